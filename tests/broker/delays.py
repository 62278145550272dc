"""A data path that delivers delayed messages, and a store that refuses some."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.services import DELIVERY_SECONDS
from rocketbroker.errors import ServiceNotAvailable
from rocketbroker.store.interfaces import (
    PUT_OK,
    Draft,
    IQueue,
)
from rocketbroker.store.message_store import Store
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.broker.rig import UNIQUE, Rig, send_ext

SEND = RequestCode.SEND_MESSAGE_V2


class DelayingCase(SynchronousTestCase):
    """A data path that delivers what has waited."""

    def setUp(self) -> None:
        """A topic T of four queues."""
        self.rig = self.begin()

    def begin(self, **settings: str) -> Rig:
        """A data path with those settings, at work."""
        return self.at_work(Rig(settings, wrap=Refusing))

    def at_work(self, rig: Rig) -> Rig:
        """Let a data path deliver; it is the one of the test."""
        self.rig = rig
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        rig.schedule.start()
        return rig

    def send(
        self, level: int | str, body: bytes = b"body", queue_id: int = 0, more: str = ""
    ) -> Command:
        """Send a message with a delay level."""
        properties = f"UNIQ_KEY\x01{UNIQUE}\x02DELAY\x01{level}\x02{more}"
        ext = send_ext(queue_id=queue_id, properties=properties)
        answer = self.rig.ask(SEND, ext, body)
        self.rig.scheduler.dispatch()
        return answer

    def pass_by(self, seconds: float, step: float = DELIVERY_SECONDS) -> None:
        """Let time pass as it does."""
        end = self.rig.clock.seconds() + seconds
        while (left := end - self.rig.clock.seconds()) > 1e-6:
            self.rig.clock.advance(min(left, step))

    def refusing(self) -> Refusing:
        """From now on messages are delivered into a store that refuses some."""
        return refusing(self.rig)

    def bodies(self, queue_id: int = 0, topic: str = "T") -> list[bytes]:
        """What a queue holds."""
        return [stored.body for stored in self.rig.records(queue_id, topic)]


class Refusing:
    """A store that does not take everything.

    @ivar appends: how many messages each append had.
    @ivar bodies: by body, the status with which it is refused.
    @ivar full: queues that cannot be made.
    @ivar broken: whether each append is a mistake.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.appends: list[int] = []
        self.bodies: dict[bytes, int] = {}
        self.full: set[tuple[str, int]] = set()
        self.broken = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def queue(self, topic: str, queue_id: int) -> IQueue:
        """A queue, or no room for it."""
        if (topic, queue_id) in self.full:
            raise ServiceNotAvailable("no new queue")
        return self._store.queue(topic, queue_id)

    def append(self, drafts: list[Draft]) -> None:
        """Append what is not to be refused."""
        assert not self.broken or 1 // 0
        self.appends.append(len(drafts))
        for draft in drafts:
            draft.status = self.bodies.get(draft.body, PUT_OK)
        self._store.append([draft for draft in drafts if draft.status == PUT_OK])


def refusing(rig: Rig) -> Refusing:
    """The store of a rig that was made with one that can refuse."""
    store = rig.seen
    assert isinstance(store, Refusing)
    store.appends.clear()
    return store
