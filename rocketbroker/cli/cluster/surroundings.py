# -*- test-case-name: tests.cli.cluster.verbs.test_send -*-
"""The surroundings of a command: its machine, and how verbs connect to send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

import attrs

from rocketbroker.blocking.machine import Machine, ThisMachine
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.routing.topic_view import MessageQueue


class Sender(Protocol):
    """The part of C{rocketbroker.threads.Session} that verbs send with."""

    def send_all(
        self,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        patience: float | None = None,
    ) -> Iterator[SendResult]:
        """See C{rocketbroker.client.session.Session.send_all}."""

    def send_batch(
        self,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        patience: float | None = None,
    ) -> list[SendResult]:
        """See C{rocketbroker.client.session.Session.send_batch}."""


#: Connects to name servers; with so many seconds for a request, and such patience.
Connect: TypeAlias = Callable[[str, float, float], AbstractContextManager[Sender]]


def connect(
    name_servers: str, seconds: float, patience: float
) -> AbstractContextManager[Sender]:
    """A session of L{rocketbroker.threads}."""
    from rocketbroker.threads import connect as open_session  # few verbs need it

    return open_session(name_servers, seconds=seconds, patience=patience)


@attrs.frozen
class Surroundings:
    """What a command runs in.

    @ivar machine: of the blocking client.
    @ivar connect: what verbs send with.
    """

    machine: Machine = attrs.field(factory=ThisMachine)
    connect: Connect = connect
