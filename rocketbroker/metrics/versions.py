# -*- test-case-name: tests.metrics.test_process_families -*-
"""The version of this package."""

from __future__ import annotations


def own_version() -> str:
    """The version of this package; of a checkout that is not installed, unknown."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("rocketbroker")
    except PackageNotFoundError:
        return "unknown"
