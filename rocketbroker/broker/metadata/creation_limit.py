# -*- test-case-name: tests.broker.metadata.test_creation_limit -*-
"""Limits of topics and groups that clients create by using them.

All topics go to name servers in one frame of 16 MiB, 430 bytes for the longest name,
and each group may have two topics of its own. Without a limit a client that invents
names could make the broker unknown to all clients. Operators may create more; the
topics of retries and dead letters of known groups are created all the same, because
without them messages could not be stored.
"""

from __future__ import annotations

from typing import final

from twisted.logger import Logger


@final
class CreationLimit:
    """The limit of what clients may create, of topics or groups.

    @ivar most: as many may be there.
    @ivar key: the setting.
    @ivar refused: how many creations were refused.
    """

    _log = Logger()

    def __init__(self, things: str, key: str, most: int) -> None:
        self.most = most
        self.key = key
        self.refused = 0
        self._things = things
        self._is_logged = False

    def allows(self, count: int, name: str) -> bool:
        """Whether one more may be created; logs the first of several refusals.

        @param count: how many there are.
        @param name: of the one that would be created.
        """
        if count < self.most:
            self._is_logged = False
            return True
        self.refused += 1
        if not self._is_logged:
            self._is_logged = True
            self._log.error(
                "{things} that clients use are not created any more, {name} the first: "
                "there are {count}, and {key} is {most}",
                things=self._things,
                name=name,
                count=count,
                key=self.key,
                most=self.most,
            )
        return False

    def problem(self, count: int) -> str:
        """A sentence for the operator; empty if there is room.

        @param count: how many there are.
        """
        if count < self.most:
            return ""
        return (
            f"{self._things} that clients use are not created any more: there are "
            f"{count}. Delete those that nobody uses, or raise {self.key}."
        )
