# -*- test-case-name: tests.cli.cluster.doctor.test_doctor -*-
"""The findings of C{rocketbroker doctor}."""

from __future__ import annotations

from typing import Final, NamedTuple

OK: Final = "ok"
WARNING: Final = "warning"
PROBLEM: Final = "problem"


class Finding(NamedTuple):
    """The outcome of one check.

    @ivar status: C{ok}, C{warning} or C{problem}.
    @ivar what: of a server, or of a setting.
    @ivar words: what was found, and what to do.
    """

    status: str
    what: str
    words: str
