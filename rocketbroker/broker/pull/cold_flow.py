# -*- test-case-name: tests.broker.pull.test_cold_flow -*-
"""Flow control of groups that read cold data, and requests 2001 to 2004 about it.

A group that reads what has left memory long ago takes the disk, and the memory that
others' messages are in. With coldDataFlowControlEnable the bytes of such reads are
counted by group, in windows of L{WINDOW_SECONDS}. A group that has read as much as its
threshold in a window, or any group that reads cold data once all of them together have
read globalColdReadThreshold, has its cold pulls refused with SYSTEM_BUSY until the
window ends; its clients ask again after some milliseconds. Those of consumers that pull
by themselves wait L{WAIT_SECONDS}, and then get one message, or all they asked for if
the window has ended. Pulls of messages in memory, and other groups, are served as ever.

The threshold is cgColdReadThreshold, or what an operator has set for the group; that is
forgotten when the broker stops, as in RocketMQ. There are no thresholds that adapt
(coldCtrStrategyEnable).

C{docs/facts/broker.md} 12.6; C{docs/facts/admin.md} 2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from twisted.logger import Logger

from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.metadata.groups import BUILT_IN
from rocketbroker.broker.pull.pull_checks import ACTIVELY
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.properties import parse
from rocketbroker.errors import InvalidParameter, SystemFailure
from rocketbroker.remoting.audit_line import differences
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

#: Sums begin anew so often, as in RocketMQ.
WINDOW_SECONDS: Final = 5.0

#: So long those wait that may; RocketMQ looks every five seconds for who has waited
#: for three.
WAIT_SECONDS: Final = 3.0

#: A group is forgotten that has read no cold data for so long.
IDLE_SECONDS: Final = 60.0

#: Operators may set thresholds of so many groups: they stay until the broker stops.
MAX_THRESHOLDS: Final = 10_000

#: The longest body of requests 2001 and 2002: one names one group as a rule.
MAX_LINES: Final = 1 << 15

#: The remark of a refusal, as RocketMQ has it.
REFUSAL: Final = "This consumer group is reading cold data. It has been flow control"


@final
class ColdReads:
    """What one group has read.

    @ivar size: bytes in this window.
    @ivar since_ms: the time of its first cold read.
    @ivar last_ms: that of its last, and C{last} the same in monotonic seconds.
    """

    __slots__ = ("last", "last_ms", "since_ms", "size")

    def __init__(self, now_ms: int) -> None:
        self.size = 0
        self.since_ms = self.last_ms = now_ms
        self.last = 0.0


@final
class ColdFlow:
    """Counts cold reads, and says whose are too many.

    @ivar refused: how many pulls L{rocketbroker.broker.pull.pull} has refused for it.
    """

    _log = Logger()

    def __init__(
        self,
        settings: BrokerSettings,
        consumers: ConsumerRegistry,
        seconds: Callable[[], float],
        wall_ms: Callable[[], int],
        change: Callable[[Mapping[str, str]], None],
    ) -> None:
        """
        @param seconds: monotonic time.
        @param change: changes settings of the broker while it runs.
        """
        self.refused = 0
        self._change = change
        self._consumers = consumers
        self._seconds = seconds
        self._wall_ms = wall_ms
        self._began = seconds()
        self._total = 0
        self._reads: dict[str, ColdReads] = {}
        self._thresholds: dict[str, int] = {}
        self.configure(settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._enabled = settings.store.cold_data_flow_control_enable
        self._threshold = settings.broker.cg_cold_read_threshold
        self._most = settings.broker.global_cold_read_threshold

    def limits(self, group: str) -> bool:
        """Whether a group has had enough cold data for now."""
        reads = self._reads.get(group)
        if not self._enabled or reads is None or group in BUILT_IN:
            return False
        self._roll()
        threshold = self._thresholds.get(group, self._threshold)
        return reads.size >= threshold or self._total >= self._most

    def may_wait(self, group: str) -> bool:
        """Whether cold pulls of a group wait when it is limited; others are refused."""
        online = self._consumers.group(group)
        return online is not None and online.consume_type == ACTIVELY

    def read(self, group: str, size: int) -> None:
        """A group has read so many bytes of cold data."""
        if not self._enabled:
            return
        self._roll()
        reads = self._reads.get(group)
        if reads is None:
            reads = self._reads[group] = ColdReads(self._wall_ms())
        reads.size += size
        reads.last = self._seconds()
        reads.last_ms = self._wall_ms()
        self._total += size

    def _roll(self) -> None:
        """Begin a new window when it is time."""
        now = self._seconds()
        if now - self._began < WINDOW_SECONDS:
            return
        self._began, self._total = now, 0
        kept = self._reads.items()
        self._reads = {
            group: each for group, each in kept if now - each.last < IDLE_SECONDS
        }
        for each in self._reads.values():
            each.size = 0

    # Operators.

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        for code, responder in (
            (RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, self.update),
            (RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, self.remove),
            (RequestCode.GET_COLD_DATA_FLOW_CTR_INFO, self.show),
            (RequestCode.SET_COMMITLOG_READ_MODE, self.set_read_ahead),
        ):
            table.register(code, responder)

    def set_read_ahead(self, connection: IConnection, request: Command) -> Command:
        """Request 2004: whether the system reads ahead in the log, until the broker
        stops: 0 for yes, 1 for no, the numbers of madvise(2).

        @raise SystemFailure: none is given.
        @raise InvalidParameter: it is another one.
        """
        mode = (request.ext or {}).get("READ_AHEAD_MODE")
        if mode is None:
            raise SystemFailure("set commitlog readahead mode param error")
        if mode not in ("0", "1"):
            raise InvalidParameter("set commitlog readahead mode param value error")
        self._change({"dataReadAheadEnable": "true" if mode == "0" else "false"})
        self._log.info(
            "{peer} set the mode of reading ahead to {mode}",
            peer=connection.who,
            mode=mode,
        )
        answer = response_to(request)
        answer.remark = f"set commitlog readahead mode success, mode: {mode}"
        return answer

    def update(self, connection: IConnection, request: Command) -> Command:
        """Request 2001: set thresholds, lines C{group=bytes}; no number is no change.

        @raise SystemFailure: too many groups.
        """
        check_lines(request)
        texts = parse(request.body.decode("utf-8", "replace"))
        found = {group: int(text) for group, text in texts.items() if text.isdecimal()}
        if len(self._thresholds.keys() | found.keys()) > MAX_THRESHOLDS:
            raise SystemFailure(f"no more than {MAX_THRESHOLDS} groups have thresholds")
        known = self._thresholds
        before = {group: known[group] for group in found if group in known}
        self._thresholds.update(found)
        if found:
            self._log.info(
                "{peer} set thresholds of cold reads, in bytes by group: {changes}",
                peer=connection.who,
                changes=differences(before, found),
            )
        return response_to(request)

    def remove(self, connection: IConnection, request: Command) -> Command:
        """Request 2002: the group that is named has the threshold of all others."""
        check_lines(request)
        group = request.body.decode("utf-8", "replace")
        if self._thresholds.pop(group, None) is not None:
            self._log.info(
                "{peer} removed the threshold of cold reads of group {group!r:.300}",
                peer=connection.who,
                group=group,
            )
        return response_to(request)

    def show(self, connection: IConnection, request: Command) -> Command:
        """Request 2003: thresholds, and what was read in this window."""
        self._roll()
        return with_body(
            request,
            {
                "cgColdReadThreshold": self._threshold,
                "configTable": self._thresholds,
                "globalAcc": self._total,
                "globalColdReadThreshold": self._most,
                "runtimeTable": {
                    group: {
                        "coldAcc": each.size,
                        "createTimeMills": each.since_ms,
                        "lastColdReadTimeMills": each.last_ms,
                    }
                    for group, each in self._reads.items()
                },
            },
        )


def check_lines(request: Command) -> None:
    """Refuse a body that takes too long to be read and logged.

    @raise SystemFailure: it is longer than L{MAX_LINES}.
    """
    if len(request.body) > MAX_LINES:
        raise SystemFailure(
            f"a change of thresholds has {MAX_LINES} bytes at most, not "
            f"{len(request.body)}: ask for them in several requests"
        )
