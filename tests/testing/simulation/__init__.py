"""The model of a broker, and the choice of what is done to it."""
