# -*- test-case-name: tests.store.recovery.test_recovery -*-
"""The outcome of the recovery of a store: its decisions and findings, as one value."""

from __future__ import annotations

from enum import Enum
from typing import final

import attrs


class Trust(Enum):
    """How far the files of the consume queues are believed. It only ever goes down."""

    #: All of them: the last stop was clean, and nothing contradicts that.
    ALL = "all"

    #: The entries of records before the start position of the scan.
    BEFORE_START = "before the start position"

    #: None: all queues are made again from the first record of the log.
    NONE = "none"


@final
@attrs.frozen
class RecoveryOutcome:
    """The outcome of one recovery.

    @ivar clean: whether the last stop was clean.
    @ivar trust: how far the queues were believed in the end.
    @ivar start: the position from which the log was scanned.
    @ivar end: the position where the log ends now.
    @ivar records: how many records were read.
    @ivar cut_bytes: how many bytes behind the last record were discarded.
    @ivar cut_position: where these began; -1 if there were none.
    @ivar seconds: how long it took.
    """

    clean: bool
    trust: Trust
    start: int = 0
    end: int = 0
    records: int = 0
    cut_bytes: int = 0
    cut_position: int = -1
    seconds: float = 0.0
