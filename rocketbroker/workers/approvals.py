# -*- test-case-name: tests.workers.test_worker_sends -*-
"""Approvals of sends: the owner's decision on what workers may append themselves.

They may append a send that would go the hot way here, and only while all sends do that
the same way: L{Approvals.may_append}. Whatever changes of what they were told changes
the version word first; so from then on none of them appends by what was before, and all
are told anew.
"""

from __future__ import annotations

from typing import Final, final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from rocketbroker.broker.broker import Broker
from rocketbroker.broker.roles import Role
from rocketbroker.remoting.counts import Counts
from rocketbroker.remoting.interfaces import ITurns
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.running_flags import NOT_APPENDABLE
from rocketbroker.store.sharing.sharing import Sharing
from rocketbroker.workers.link_frames import Kind
from rocketbroker.workers.link_messages import (
    BROKER_SETTINGS,
    STORE_SETTINGS,
    Allowance,
    Appended,
    Ask,
    QueueAnswer,
    encode,
    read_appended,
    read_ask,
    some_of,
)
from rocketbroker.workers.owner_link import WorkerLink
from rocketbroker.workers.pull_approvals import PullApprovals

#: While nothing is allowed.
_NOTHING: Final = Allowance(0, {}, {}, "", 0)


@final
class Approvals:
    """Lets workers append, and answer pulls.

    @ivar pulls: the pulls.
    @ivar port_counts: those of the main port. It gets what workers have served, though
        some of it may have come to the VIP port.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        turns: ITurns,
        broker: Broker,
        sharing: Sharing,
        store_host: bytes,
    ) -> None:
        """
        @param sharing: of the broker's store, which no plug-in is around.
        """
        self.pulls = PullApprovals(clock, broker, sharing, lambda: self.port_counts)
        self.port_counts = Counts()
        self._clock = clock
        self._broker = broker
        self._sharing = sharing
        self._store_host = store_host
        self._version = 0
        self._is_allowed = False
        self._stopped = False
        self._links: list[WorkerLink] = []
        self._asks: list[tuple[WorkerLink, Ask]] = []
        self._telling: IDelayedCall | None = None
        turns.watch_turn_end(self._turn_ended)

    def start(self) -> None:
        """The store is open: let them append from now on."""
        broker = self._broker
        broker.metadata.topics.watch_changes(self.changed)
        broker.metadata.mappings.watch(self.changed)
        broker.running.watch(lambda _: self.changed())
        self.changed()
        self.pulls.start()

    def stop(self) -> None:
        """Let nobody append any more."""
        self._stopped = True
        self.changed()
        self.pulls.stop()

    def may_append(self) -> bool:
        """Whether all ordinary sends are appended and answered at once, by nobody's
        leave."""
        broker = self._broker
        settings = broker.settings
        return (
            not self._stopped
            and self._sharing.is_on
            and broker.services.role is Role.MASTER
            and not settings.store.enable_lmq
            and not settings.broker.acl_enable
            and not broker.appends.waits
            and not broker.store.flags.bits & NOT_APPENDABLE
        )

    def changed(self) -> None:
        """Something of what they were told is not so any more, or is about to be."""
        self._version += 1
        self._is_allowed = self.may_append()
        self._sharing.let_append(self._version if self._is_allowed else 0)
        if self._telling is None and self._links and not self._stopped:
            self._telling = self._clock.callLater(0, self._tell_all)

    def _tell_all(self) -> None:
        self._telling = None
        payload = encode(self._allowance())
        for link in self._links:
            link.tell(Kind.ALLOW, payload)

    def _allowance(self) -> Allowance:
        if not self._is_allowed:
            return _NOTHING
        settings = self._broker.settings
        return Allowance(
            self._version,
            some_of(settings.store, STORE_SETTINGS),
            some_of(settings.broker, BROKER_SETTINGS),
            self._store_host.hex(),
            settings.store.rocketbroker_max_unflushed_bytes,
        )

    # Workers.

    def joined(self, link: WorkerLink) -> None:
        """There is a new worker."""
        link.hears = self._hears
        self._links.append(link)
        link.tell(Kind.ALLOW, encode(self._allowance()))
        self.pulls.joined(link)

    def left(self, link: WorkerLink) -> None:
        """A worker's link is gone."""
        if link in self._links:
            self._links.remove(link)
        self._asks = [ask for ask in self._asks if ask[0] is not link]
        self.pulls.left(link)

    def ended(self) -> None:
        """A worker's process is gone: it may have died in an append, or before it has
        told of one."""
        if not self._stopped:
            self._sharing.mend()
            self._broker.storage.appended()

    def _hears(self, link: WorkerLink, kind: int, payload: bytes) -> None:
        if kind == Kind.ASK:
            # Its first send to that queue may have come with it, and be the one that
            # makes the topic: answered when the turn has served it.
            self._asks.append((link, read_ask(payload)))
        elif kind == Kind.APPENDED:
            self._count(read_appended(payload))
        else:
            self.pulls.hears(link, kind, payload)

    def _turn_ended(self) -> None:
        if self._is_allowed is not self.may_append() and not self._stopped:
            self.changed()
        if self._asks:
            asks, self._asks = self._asks, []
            for link, ask in asks:
                slot = self._slot(ask)
                answer = QueueAnswer(self._version, ask.topic, ask.queue_id, slot)
                link.tell(Kind.QUEUE, encode(answer))
        self.pulls.turn_ended()

    def _slot(self, ask: Ask) -> int:
        """The words of a queue to which workers may append; -1: they may not."""
        broker = self._broker
        if not self._is_allowed or broker.metadata.is_static(ask.topic):
            return -1
        sends = broker.send.approved(ask.topic, ask.queue_id)
        if sends is None:
            return -1
        queue = sends.queue
        return queue.slot if type(queue) is Queue and queue.usable else -1

    def _count(self, said: Appended) -> None:
        """Count what a worker has appended, dispatch it, and send it on."""
        broker = self._broker
        messages = size = 0
        for row in said.queues:
            messages += row.messages
            size += row.bytes
            broker.send.stored_by_worker(row)
        self.port_counts.frames_in += sum(said.requests.values())
        self.port_counts.frames_out += said.answers
        self.port_counts.bytes_in += said.bytes_in
        self._sharing.appended(messages, size, said.store_ms)
        broker.appends.appended_by_worker(said.seconds, messages)
        for code, count in said.requests.items():
            if count:
                broker.main.answered(code, 0, said.seconds, count)
                broker.send.taken_by_worker(count)
        try:
            broker.storage.appended_by_worker()
        except Exception:
            # A mistake of ours: the worker's link is not to end for it.
            self._log.failure("What a worker has appended could not be dispatched.")
