"""The application of the shop."""
