# -*- test-case-name: tests.wire.test_versions -*-
"""The names of releases of RocketMQ: C{docs/facts/remoting.md 4.4}."""

from __future__ import annotations

from typing import Final

#: The ordinal of V4_0_0_SNAPSHOT. From here on each release has a snapshot before it,
#: and each digit of the number runs from 0 to 9.
FIRST: Final = 212

#: The ordinal of HIGHER_VERSION, which follows V5_9_9.
HIGHER: Final = 612


def version_name(ordinal: int) -> str:
    """The name of a client's release: C{v5_3_3}, C{v4_9_8_snapshot}.

    Clients older than 4.0 are not told apart.
    """
    if ordinal >= HIGHER:
        return "higher_version"
    if ordinal < FIRST:
        return "before_v4_0_0"
    number, released = divmod(ordinal - FIRST, 2)
    major, rest = divmod(number, 100)
    minor, patch = divmod(rest, 10)
    name = f"v{major + 4}_{minor}_{patch}"
    return name if released else f"{name}_snapshot"
