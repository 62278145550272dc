"""Tests of rocketbroker.threads."""

import logging

# What is logged in tests is asserted where it matters, and printed nowhere.
logging.getLogger("rocketbroker.client").addHandler(logging.NullHandler())
