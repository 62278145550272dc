# -*- test-case-name: tests.broker.pull.test_denied_pulls -*-
"""Pulls that were refused because a group or a topic may not be read.

Heartbeats do not tell everything: a consumer that chooses its queues itself subscribes
to nothing and pulls all the same. Checks of pulls note here what they refuse, and
L{rocketbroker.broker.diagnostics.group_diagnosis} takes it away every few seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, TypeAlias, final

from rocketbroker.errors import NoPermission
from rocketbroker.wire.command import Command

#: Stands for the topic if it is the group that may not read anything.
ANY_TOPIC: Final = ""

#: So many groups and topics are noted between two looks; others only are counted, and
#: noted later, as clients go on asking.
MAX_NOTED: Final = 1000

#: So many addresses are noted for each of them.
MAX_ADDRESSES: Final = 5

#: The addresses of one group that were refused, by topic.
Refused: TypeAlias = Mapping[str, Sequence[str]]


class PullForbidden(NoPermission):
    """NO_PERMISSION, with the reason as a number that newer clients look at.

    @ivar kind: 1 broker, 2 group, 3 topic, 4 broadcasting, 5 group and topic.
    """

    code: ClassVar[int] = NoPermission.code

    def __init__(self, kind: int, remark: str) -> None:
        super().__init__(remark)
        self.kind = kind


def forbidden(error: PullForbidden) -> Command:
    """The answer to a pull that is not allowed."""
    return Command(error.code, {"forbiddenType": str(error.kind)}, remark=error.remark)


@final
class DeniedPulls:
    """What was refused since the last look.

    @ivar count: how many pulls were refused since the start.
    """

    def __init__(self) -> None:
        self.count = 0
        self._noted: dict[tuple[str, str], list[str]] = {}

    def note(self, group: str, topic: str, address: str) -> None:
        """One pull was refused.

        @param group: a group that is there.
        @param topic: a topic that is there, or L{ANY_TOPIC}.
        """
        self.count += 1
        noted = self._noted.get((group, topic))
        if noted is None:
            if len(self._noted) < MAX_NOTED:
                self._noted[group, topic] = [address]
        elif len(noted) < MAX_ADDRESSES and address not in noted:
            noted.append(address)

    def take(self) -> dict[tuple[str, str], list[str]]:
        """The addresses, by group and topic; they are forgotten here."""
        noted, self._noted = self._noted, {}
        return noted
