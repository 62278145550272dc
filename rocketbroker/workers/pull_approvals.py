# -*- test-case-name: tests.workers.test_worker_pulls -*-
"""Approvals of pulls: the owner's decision on which pulls workers may answer
themselves.

They may answer a pull that would go the hot way here and find something in memory. What
such a pull rests on changes with topics, groups, subscriptions, settings and resets of
offsets. Each of these sets the version word to 0 first; so from then on no worker
answers by what was before. All are told anew a little later, and ask for their routes
again: in between pulls are relayed. That wait bounds what a consumer that comes, or one
that rebalances, costs all others.

The word is set in the turn of the change, before any answer of that turn leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from rocketbroker.broker.broker import Broker
from rocketbroker.broker.clients.sql_compiler import MAX_AT_ONCE
from rocketbroker.broker.roles import Role
from rocketbroker.errors import BrokerError
from rocketbroker.filtering import tags
from rocketbroker.records.names import is_retry_topic
from rocketbroker.remoting.counts import Counts
from rocketbroker.store.assembly import physical_memory
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.running_flags import WRITE_LOGICS_QUEUE_ERROR
from rocketbroker.store.sharing.sharing import Sharing
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.pull import SUBSCRIPTION
from rocketbroker.wire.hot import PullFields
from rocketbroker.workers.link_frames import (
    WAIT_WORDS,
    WAKE_ALL,
    WAKE_WORD,
    Kind,
)
from rocketbroker.workers.link_messages import (
    READ_SETTINGS,
    WAIT_SETTINGS,
    AskPull,
    PullAllowance,
    Pulled,
    PullRoute,
    encode,
    read_ask_pull,
    read_pulled,
    some_of,
)
from rocketbroker.workers.owner_link import WorkerLink

#: So long after a change workers are told anew, with all other changes until then.
SETTLE_SECONDS: Final = 0.05

#: While nothing is allowed.
_NOTHING: Final = PullAllowance(0, {}, {}, 0)


@final
class PullApprovals:
    """The pulls that workers may answer, as the owner allows them."""

    def __init__(
        self,
        clock: IReactorTime,
        broker: Broker,
        sharing: Sharing,
        port_counts: Callable[[], Counts],
    ) -> None:
        """
        @param sharing: of the broker's store, which no plug-in is around.
        @param port_counts: those of the main port, which gets what workers have served.
        """
        self._port_counts = port_counts
        self._clock = clock
        self._broker = broker
        self._sharing = sharing
        self._version = 0
        self._is_allowed = False
        self._stopped = False
        self._seen = (0, 0, 0)
        self._links: list[WorkerLink] = []
        self._asks: list[tuple[WorkerLink, AskPull]] = []
        self._waiting: dict[int, set[WorkerLink]] = {}
        self._telling: IDelayedCall | None = None

    def start(self) -> None:
        """The store is open: let them answer from now on."""
        broker = self._broker
        broker.metadata.mappings.watch(self.changed)
        broker.running.watch(lambda _: self.changed())
        broker.metadata.offsets.watch(self)
        broker.pull.long_polling.watch(self)
        self.changed()

    def stop(self) -> None:
        """Let nobody answer any more."""
        self._stopped = True
        self._sharing.let_read(0)
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None

    def may_pull(self) -> bool:
        """Whether ordinary pulls of all groups are answered at once, by nobody's
        leave, from files that have all that there is."""
        broker = self._broker
        options = broker.settings.broker
        return (
            not self._stopped
            and self._sharing.is_on
            and broker.services.role is Role.MASTER
            and not options.acl_enable
            and not options.reject_pull_consumer_enable
            and not broker.store.flags.bits & WRITE_LOGICS_QUEUE_ERROR
        )

    def changed(self) -> None:
        """Something of what they were told is not so any more, or is about to be."""
        if self._stopped:
            return
        self._sharing.let_read(0)
        if self._telling is None:
            self._telling = self._clock.callLater(SETTLE_SECONDS, self._tell_all)

    def offset_reset(self, group: str, topic: str, queue_id: int) -> None:
        """The next pull is to go on elsewhere."""
        self.changed()

    def offsets_forgotten(self, is_gone: object) -> None:
        """Nothing to do: the group or topic is gone, too."""

    def _tell_all(self) -> None:
        self._telling = None
        self._version += 1
        self._is_allowed = self.may_pull()
        self._seen = self._generations()
        self._sharing.let_read(self._version if self._is_allowed else 0)
        payload = encode(self._allowance())
        for link in self._links:
            link.tell(Kind.PULLS, payload)

    def _generations(self) -> tuple[int, int, int]:
        broker = self._broker
        topics, groups = (
            broker.metadata.topics.generation,
            broker.metadata.groups.generation,
        )
        return topics, groups, broker.clients.consumers.generation

    def _allowance(self) -> PullAllowance:
        if not self._is_allowed:
            return _NOTHING
        settings = self._broker.settings
        return PullAllowance(
            self._version,
            some_of(settings.store, READ_SETTINGS),
            some_of(settings.broker, WAIT_SETTINGS),
            physical_memory(),
        )

    # Workers.

    def joined(self, link: WorkerLink) -> None:
        """There is a new worker."""
        self._links.append(link)
        link.tell(Kind.PULLS, encode(self._allowance()))

    def left(self, link: WorkerLink) -> None:
        """A worker's link is gone."""
        if link in self._links:
            self._links.remove(link)
        self._asks = [ask for ask in self._asks if ask[0] is not link]
        for slot in [slot for slot, links in self._waiting.items() if link in links]:
            self._waiting[slot].discard(link)
            if not self._waiting[slot]:
                del self._waiting[slot]

    def hears(self, link: WorkerLink, kind: int, payload: bytes) -> None:
        """A worker says something of pulls."""
        if kind == Kind.ASK_PULL:
            self._asks.append((link, read_ask_pull(payload)))
        elif kind == Kind.PULLED:
            self._count(read_pulled(payload))
        elif kind == Kind.WAIT:
            self._wait(link, *WAIT_WORDS.unpack(payload))

    def turn_ended(self) -> None:
        """Answers leave next: see whether what workers have been told still holds."""
        if self._telling is None and not self._stopped and self._links:
            is_same = self._seen == self._generations()
            if not is_same or self._is_allowed is not self.may_pull():
                self.changed()
        if self._asks:
            asks, self._asks = self._asks, []
            for link, ask in asks:
                route = self._route(link, ask)
                if route is not None:
                    link.tell(Kind.ROUTE, encode(route))

    def _route(self, link: WorkerLink, ask: AskPull) -> PullRoute | None:
        """How a worker is to answer such pulls; C{None}: not at all."""
        broker = self._broker
        sock = link.sockets.get(ask.connection)
        if (
            not self._is_allowed
            or self._telling is not None
            or sock is None
            or sock.connection is None
            or broker.metadata.is_static(ask.topic)
            or broker.pull.is_broadcast(ask.group)
            or broker.metadata.offsets.has_reset(ask.group, ask.topic, ask.queue_id)
            or (
                broker.settings.broker.filter_support_retry
                and is_retry_topic(ask.topic)
            )
        ):
            return None
        fields = PullFields(
            ask.group,
            ask.topic,
            ask.queue_id,
            0,
            1,
            SUBSCRIPTION if ask.is_own else 0,
            subVersion=ask.sub_version,
            subscription=ask.subscription,
            expressionType=ask.expression_type,
        )
        try:
            route, queue = broker.pull.checks.check(sock.connection, fields)
        except BrokerError:
            return None
        own, known = ask.is_own, route.subscription
        if (
            type(queue) is not Queue
            or not queue.usable
            or queue.extension is not None
            or (not own and (known is None or route.sub_version < ask.sub_version))
        ):
            return None
        expression, kind = ask.subscription, ask.expression_type
        if known is not None:
            expression, kind = known.sub_string, known.expression_type
        if route.matches is None:
            expression, kind = tags.ALL, tags.TAG
        elif not tags.is_tag_type(kind) and len(expression or "") > MAX_AT_ONCE:
            # A worker compiles in its turn.
            return None
        return PullRoute(
            self._version,
            ask,
            queue.slot,
            queue.trusted_from,
            queue.from_position,
            expression,
            kind,
            route.sub_version,
            route.broker_id,
            route.topic_flag,
            route.group_flag,
        )

    def _count(self, said: Pulled) -> None:
        """Count what a worker has answered, and remember how far groups have come."""
        broker = self._broker
        offsets = broker.metadata.offsets
        for row in said.queues:
            group, topic, queue_id = row.group, row.topic, row.queue_id
            if broker.metadata.topics.config(
                topic
            ) is None or not broker.metadata.groups.config(group):
                continue
            counts = broker.pull.checks.counts_of(group, topic)
            counts.messages += row.messages
            counts.bytes += row.bytes
            counts.pulls += row.pulls
            queue = broker.store.queue(topic, queue_id)
            if queue.from_position != row.from_position:
                # It was deleted since; the group has not pulled from this one.
                continue
            offsets.commit_pull(group, topic, queue_id, row.next_offset)
            if row.commit_offset >= 0 and not offsets.has_reset(group, topic, queue_id):
                offsets.commit(group, topic, queue_id, row.commit_offset)
        broker.pull.pulled_by_worker(said.pulls, said.found, said.missed)
        port = self._port_counts()
        port.frames_in += said.pulls
        port.frames_out += said.answers
        port.bytes_in += said.bytes_in
        code = RequestCode.PULL_MESSAGE
        broker.main.answered(code, 0, said.seconds, said.pulls)

    # Pulls that wait in workers.

    def _wait(self, link: WorkerLink, slot: int, end: int) -> None:
        """A worker waits until a queue goes beyond its end.

        What was appended is dispatched first, as for a pull that waits here.
        """
        self._broker.storage.dispatch()
        if self._sharing.end_of(slot) != end:
            link.tell(Kind.WAKE, WAKE_WORD.pack(slot))
        else:
            self._waiting.setdefault(slot, set()).add(link)

    @property
    def held(self) -> int:
        """How many there are, as workers have said last."""
        return sum(link.load.held for link in self._links)

    def arrived(self, queue: IQueue) -> None:
        """A queue has grown: who waits there is told once."""
        if self._waiting and type(queue) is Queue:
            for link in self._waiting.pop(queue.slot, ()):
                link.tell(Kind.WAKE, WAKE_WORD.pack(queue.slot))

    def wake_all(self) -> None:
        """What pulls wait for will not be given to them."""
        self.changed()
        for link in self._links:
            link.tell(Kind.WAKE, WAKE_WORD.pack(WAKE_ALL))
