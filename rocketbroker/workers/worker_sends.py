# -*- test-case-name: tests.workers.test_worker_sends -*-
"""The sends that a worker appends itself.

They are those that go the hot way in the owner, to queues that the owner has told it.
Each turn looks at the version word once; when it differs from that of the last
ALLOW, all is forgotten, and relayed until the next ALLOW comes. The append looks at it
again, under its lock: then, too, the sends of the turn are relayed.

What is appended is told to the owner at most once in L{REPORT_SECONDS}; it dispatches
no sooner. A pull that comes to the end of a queue does not wait for that.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final, final

from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from rocketbroker.broker.appends.overload import UNBOUNDED
from rocketbroker.broker.appends.send_answers import (
    SIZE_BOUNDS,
    QueueSends,
    SendAnswers,
    refuse,
)
from rocketbroker.broker.messages.message_types import NORMAL
from rocketbroker.broker.send.hot_sends import CODES, HotSends
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import SystemFailure
from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.interfaces import HubReactor, IConnection
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import NOT_PUT, UNKNOWN_ERROR, Draft, IQueue
from rocketbroker.store.sharing.joined_store import MAX_DRAFTS, JoinedStore
from rocketbroker.workers.link_frames import Kind, link_frame
from rocketbroker.workers.link_messages import (
    Allowance,
    Appended,
    Ask,
    QueueAnswer,
    QueueCounts,
    encode,
)
from rocketbroker.workers.relay import OwnerRelay

#: The owner is told of appends once in this time; it dispatches no more often.
REPORT_SECONDS: Final = 0.002

#: A queue that the owner has not approved is asked for again after so long.
ASK_AGAIN_SECONDS: Final = 1.0

#: With so many drafts they are appended before the turn ends: one reading brings not as
#: many as then still fit into one append.
FULL: Final = MAX_DRAFTS - 1000

#: So many questions are remembered; clients can name any topic.
MAX_ASKED: Final = 10_000

_QUEUE: Final = attrgetter("queue")


@final
class SendRoom:
    """How many sends a turn may bring; see L{Overload<overload.Overload>}.

    @ivar room: none while the disk is too far behind; the owner says so to clients.
    """

    def __init__(self) -> None:
        self.room = 0


@final
class OwnSends:
    """Appends sends, and answers them.

    @ivar drafts: those of this turn.
    @ivar waits: never: what has to wait is relayed.
    @ivar overload: how many it takes.
    @ivar generation: never changes: the version does.
    @ivar version: of what the owner has allowed; 0: nothing.
    @ivar appended: how many messages were appended.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: HubReactor,
        join: Callable[[StoreOptions, bytes], JoinedStore],
        wall_ms: Callable[[], int],
        hub: Hub,
        group: ConnectionGroup,
        relay: OwnerRelay,
    ) -> None:
        """
        @param join: joins the owner's store, by its settings and its address in
            records; raises C{OSError} if that cannot be done.
        @param group: the clients' connections; its table gets the responders while
            anything is allowed.
        """
        self.drafts: list[Draft] = []
        self.waits = False
        self.overload = SendRoom()
        self.generation = 0
        self.version = 0
        self.appended = 0
        self._reactor = reactor
        self._join_store = join
        self._wall_ms = wall_ms
        self._hub = hub
        self._table = group.table
        self._counts = group.counts
        self._relay = relay
        self._allowance: Allowance | None = None
        self._store: JoinedStore | None = None
        self._turn = -1
        self._queues: dict[tuple[str, int], Queue] = {}
        self._counted: dict[tuple[str, int, str], QueueSends] = {}
        self._of_queue: dict[IQueue, list[QueueSends]] = {}
        self._asked: dict[tuple[str, int], float] = {}
        self._touched: set[IQueue] = set()
        #: Requests taken, by code, and all that the owner has not been told of.
        self._taken = [0] * len(CODES)
        self._requests = dict.fromkeys(CODES, 0)
        self._bytes_in = 0
        self._answered = 0
        self._seconds = 0.0
        self._reported_at = 0.0
        self._report_call: IDelayedCall | None = None
        self._answers = SendAnswers(self.refuse_draft)
        self._hot = HotSends(
            self,
            self,
            self._renew,
            self._counter,
            lambda body: None,
            self._ask,
        )
        relay.begin = self._begin
        relay.finish = self.flush
        hub.watch_turn_end(self._end_turn)

    # What the owner says.

    def allow(self, allowance: Allowance) -> None:
        """Append by this from now on."""
        self._forget()
        self.version = 0
        if allowance.version and self._join(allowance):
            self.version = allowance.version
            self._allowance = allowance
            host = bytes.fromhex(allowance.store_host)
            options = BrokerOptions(**allowance.broker)
            most: int = allowance.store["max_message_size"]
            self._hot.configure(options, most, host)
            self._hot.generation = self.generation
            self._taken = [0] * len(CODES)
            self._table.hot.clear()
            self._hot.register(self._table)
            self._relay.own_most = most
        else:
            self._table.hot.clear()

    def _join(self, allowance: Allowance) -> bool:
        """Join the store, if that is not done; whether it is."""
        options = allowance.store_options()
        if self._store is not None:
            self._store.configure(options)
            return True
        try:
            host = bytes.fromhex(allowance.store_host)
            self._store = self._join_store(options, host)
        except OSError as error:
            self._log.error("The store cannot be joined: {error}.", error=error)
            return False
        return True

    def approve(self, answer: QueueAnswer) -> None:
        """The owner says whether sends to a queue may be appended here."""
        store = self._store
        if answer.version != self.version or answer.slot < 0 or store is None:
            return
        topic, queue_id = key = answer.topic, answer.queue_id
        try:
            self._queues[key] = store.queue(topic, queue_id, answer.slot)
        except OSError as error:
            self._log.error("A queue cannot be used: {error}.", error=error)
            return
        self._hot.approve(topic, queue_id, self._counter(topic, queue_id, NORMAL))

    def _renew(self) -> None:
        """Nothing: the generation does not change."""

    def _forget(self) -> None:
        """Take no sends before they are allowed anew."""
        self.flush()
        self._report()
        for topic in self._hot.topics():
            self._hot.forget(topic)
        self._queues.clear()
        self._counted.clear()
        self._of_queue.clear()
        self._asked.clear()

    # Sends.

    def _begin(self) -> bool:
        """Whether sends are taken now: looks once in a turn whether all is still as it
        was, and the disk not too far behind."""
        if self._turn != self._hub.turn_count:
            self._turn = self._hub.turn_count
            store, allowance = self._store, self._allowance
            if self.version and store is not None and allowance is not None:
                if store.version != self.version:
                    self._forget()
                    self.version = 0
                is_behind = store.unflushed_bytes >= allowance.max_unflushed
                self.overload.room = 0 if is_behind else UNBOUNDED
        if len(self.drafts) > FULL and not self.flush():
            return False
        return self.version != 0

    def is_full(self) -> bool:
        """Whether the disk is too far behind: the room says so."""
        return self.overload.room == 0

    def _ask(self, topic: str, queue_id: int) -> None:
        """Ask the owner whether sends to a queue may be appended here."""
        now, key = self._hub.now, (topic, queue_id)
        if now < self._asked.get(key, 0.0):
            return
        if len(self._asked) >= MAX_ASKED:
            self._asked.clear()
        self._asked[key] = now + ASK_AGAIN_SECONDS
        self._relay.tell(link_frame(Kind.ASK, 0, encode(Ask(topic, queue_id))))

    def _counter(self, topic: str, queue_id: int, message_type: str) -> QueueSends:
        """The counts of a queue that is approved, and of a type of message."""
        key = topic, queue_id, message_type
        sends = self._counted.get(key)
        if sends is None:
            queue = self._queues[topic, queue_id]
            start = self._hot.answer_start(queue_id)
            sends = QueueSends(queue, topic, message_type, start, False)
            self._counted[key] = sends
            self._of_queue.setdefault(queue, []).append(sends)
        return sends

    def _end_turn(self) -> None:
        self.flush()

    def flush(self) -> bool:
        """Append all drafts and answer them, or relay their requests.

        @return: whether they were appended.
        """
        drafts = self.drafts
        if not drafts:
            return True
        self.drafts = []
        taken = [entry.taken for entry in self._table.hot.values()]
        store = self._store
        assert store is not None, "there would be no drafts"
        begin = self._reactor.seconds()
        try:
            done = store.append(drafts, self.version)
        except Exception:
            # A mistake of ours: nobody knows what was stored.
            self._log.failure("Messages could not be appended.")
            done = True
            for draft in drafts:
                if draft.status == NOT_PUT:
                    draft.status = UNKNOWN_ERROR
        before, self._taken = self._taken, taken
        if not done:
            self._relay.take_back()
            return False
        spans = self._relay.served
        self._bytes_in += sum([end - begin for _, _, begin, end in spans])
        spans.clear()
        now = self._reactor.seconds()
        self._seconds = now - begin
        for code, now_taken, was in zip(CODES, taken, before, strict=True):
            self._requests[code] += now_taken - was
        self.appended += len(drafts)
        self._touched.update(map(_QUEUE, drafts))
        counts = self._counts
        answered = counts.frames_out
        self._answers.settle(drafts, 0)
        self._answered += counts.frames_out - answered
        if self._report_call is None:
            wait = self._reported_at + REPORT_SECONDS - now
            if wait > 0:
                self._report_call = self._reactor.callLater(wait, self._report)
            else:
                self._report()
        return True

    def refuse_draft(
        self, draft: Draft, connection: IConnection | None, opaque: int
    ) -> None:
        """Tell the sender of a draft that it was not stored."""
        if connection is not None:
            refuse(connection, opaque, SystemFailure("UNKNOWN_ERROR"))

    # What was appended.

    def _report(self) -> None:
        """Tell the owner what was appended."""
        call, self._report_call = self._report_call, None
        if call is not None and call.active():
            call.cancel()
        if not self._touched:
            return
        self._reported_at = self._reactor.seconds()
        counts: list[QueueCounts] = []
        for queue in self._touched:
            for sends in self._of_queue[queue]:
                if sends.messages:
                    counts.append(_taken(sends))
        self._touched.clear()
        requests = {int(code): count for code, count in self._requests.items()}
        self._requests = dict.fromkeys(CODES, 0)
        said = Appended(
            self._wall_ms(),
            self._seconds,
            requests,
            self._bytes_in,
            self._answered,
            counts,
        )
        self._bytes_in = self._answered = 0
        self._relay.tell(link_frame(Kind.APPENDED, 0, encode(said)))

    def let_go(self) -> None:
        """Keep no file open that the owner may want to remove; once in a while."""
        if self._store is not None:
            self._store.let_go()

    def close(self) -> None:
        """Append no more."""
        self._forget()
        self.version = 0
        self._table.hot.clear()
        if self._store is not None:
            self._store.close()
            self._store = None


def _taken(sends: QueueSends) -> QueueCounts:
    """The counts of a queue, which begin anew."""
    found = QueueCounts(
        sends.topic,
        sends.queue.queue_id,
        sends.message_type,
        sends.messages,
        sends.bytes,
        sends.small,
        sends.beyond_average,
        sends.sizes,
    )
    sends.messages = sends.bytes = sends.small = sends.beyond_average = 0
    sends.sizes = [0] * (len(SIZE_BOUNDS) + 1)
    return found
