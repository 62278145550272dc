"""One store and several processes that append to it."""
