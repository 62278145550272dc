# -*- test-case-name: tests.cli.cluster.verbs.test_send -*-
"""The surroundings of a command: its machine, and how verbs connect to send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

import attrs

from rocketbroker.auth.signatures import Credentials
from rocketbroker.blocking.machine import Machine, ThisMachine
from rocketbroker.blocking.settings import Settings
from rocketbroker.cli.cluster.access import Access, client_options
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.routing.topic_view import MessageQueue

if TYPE_CHECKING:
    from rocketbroker.threads import Session


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


#: Connects to a cluster as the settings say, with so much patience in seconds.
Connect: TypeAlias = Callable[[Settings, float], AbstractContextManager[Sender]]


def connect(
    settings: Settings, patience: float | None = None
) -> AbstractContextManager[Session]:
    """A session of L{rocketbroker.threads}.

    @param patience: C{None}: the usual one.
    """
    from rocketbroker.threads import connect as open_session  # few verbs need it

    access = Access(tls=settings.tls, credentials=settings.credentials)
    options = client_options(access)
    options["seconds"] = settings.seconds
    if patience is not None:
        options["patience"] = patience
    return open_session(settings.name_servers, **options)


@attrs.frozen
class Surroundings:
    """What a command runs in.

    @ivar machine: of the blocking client.
    @ivar connect: what verbs send with.
    @ivar keys: what requests are signed with where nothing else says it.
    @ivar password: what a user has given for one that verbs ask for.
    """

    machine: Machine = attrs.field(factory=ThisMachine)
    connect: Connect = connect
    keys: Credentials | None = None
    password: str | None = attrs.field(default=None, repr=False)
