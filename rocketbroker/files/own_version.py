# -*- test-case-name: tests.files.test_own_version -*-
"""The version of this package, as it is installed."""

from __future__ import annotations

import functools


@functools.cache
def own_version() -> str:
    """The version of this package; of a checkout that is not installed, unknown."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("rocketbroker")
    except PackageNotFoundError:
        return "unknown"
