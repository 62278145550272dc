# -*- test-case-name: tests -*-
"""Tests, laid out as the packages are."""

from tests.missing import skip_where_missing

skip_where_missing()
