# -*- test-case-name: tests.broker.transaction.test_check_back -*-
"""The check back: questions to producers about their open transactions.

Every transactionCheckInterval one I{round} goes through the half queue, from the base
(L{open_transactions}) to its end at the start of the round. Half messages are read in a
thread, L{MAX_READ} at a time, and each is judged:

  - it is too young: the round is over, as those behind it are younger;
  - its producer wishes no check yet: it is stored anew, at the end;
  - it was checked transactionCheckMax times, or is older than the log is kept: it is
    discarded, to TRANS_CHECK_MAX_TIME_TOPIC;
  - otherwise it is stored anew with a higher count, and one producer of its group gets
    the check for that copy.

A half message that is stored anew is marked as over behind its copy, so the base can
move on. A crash between the two leaves two copies, of which the start
(L{CheckBack.load}) marks the older. The saved offsets of half and op queue never pass
messages that are not on the disk.

In RocketMQ a copy keeps neither flag nor reconsume times, waiting by the producer's
wish counts as a check, and a message whose last check is on its way is discarded in the
same round. Here a copy keeps them, waiting does not count, and the message is not
discarded before the next round.

C{docs/facts/transaction-timer-pop.md} A6, A7; C{docs/facts/broker.md} 17.4.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from functools import partial
from typing import Final, TypeVar, final

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from rocketbroker.broker.appends.own_appends import OwnAppends
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.transaction_messages import (
    Over,
    discarded,
    half_at,
    parsed_offset,
    question,
    renewed,
)
from rocketbroker.broker.metadata.offsets import NONE, OffsetTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.roles import MASTERS
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.broker.transaction.counters import TransactionCounters
from rocketbroker.broker.transaction.end_transaction import immunity_ms
from rocketbroker.broker.transaction.op_queue import OpQueue
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.records.names import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from rocketbroker.records.properties import (
    CHECK_IMMUNITY_SECONDS,
    MAX_BYTES,
    PRODUCER_GROUP,
    REAL_TOPIC,
    TRANSACTION_CHECK_TIMES,
)
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.interfaces import (
    MESSAGE_ILLEGAL,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    Draft,
)

#: How often marks of transactions that could not be written are tried again.
MARKS_SECONDS: Final = 1.0

CHECKS: Final = Service(
    "checks of transactions",
    "producers are asked how open transactions ended",
    lambda s: max(1, s.broker.transaction_check_interval) / 1000,
    roles=MASTERS,
)
MARKS: Final = Service(
    "marks of transactions",
    "ends of transactions that could not be written are written",
    always(MARKS_SECONDS),
    roles=MASTERS,
)

T = TypeVar("T")

#: The group whose offsets say how far the checks are.
GROUP: Final = "CID_RMQ_SYS_TRANS"

#: How many halves are read and judged at once: with the largest of 4 MiB, what a thread
#: may hold for one step.
MAX_READ: Final = 32

#: How many bytes of halves are held at once; one more may come on top.
MAX_HELD_BYTES: Final = 4 << 20

#: A round takes no longer; the next goes on where it was.
ROUND_SECONDS: Final = 60.0

#: How many open halves the start looks at, a second or so on a slow disk. What is
#: behind them is found by the rounds.
MAX_LOADED: Final = 20_000

#: A half that cannot be read is looked at in so many rounds, one after the other, and
#: then passed: it was acknowledged, and the disk may give later what it does not now.
MAX_UNREADABLE: Final = 3

#: What is to be done with a half.
_WAIT: Final = "wait"
_SPARE: Final = "spare"
_DISCARD: Final = "discard"
_ASK: Final = "ask"

#: Offset in the half queue, and the half if it can be read.
Found = tuple[int, StoredMessage | None]


@final
class CheckBack:
    """The service that asks producers about half messages.

    @ivar asked: how many questions were sent.
    @ivar unasked: how many had no producer to go to.
    @ivar discarded: how many halves were discarded.
    @ivar unreadable: how many could not be read.
    @ivar failures: how often the store did not take a copy.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        marks: OpQueue,
        counts: TransactionCounters,
        offsets: OffsetTable,
        topics: TopicTable,
        producers: ProducerRegistry,
        appends: OwnAppends,
    ) -> None:
        self.asked = 0
        self.unasked = 0
        self.discarded = 0
        self.unreadable = 0
        self.failures = 0
        self._clock = context.clock
        self._store = context.store
        self._state = marks.state
        self._marks = marks
        self._counts = counts
        self._offsets = offsets
        self._topics = topics
        self._producers = producers
        self._appends = appends
        self._store_host = context.host
        self._wall_ms = context.wall_ms
        self._in_thread: InThread = context.in_thread
        self._services: Services = context.services
        self._turn = 0
        self._unread: dict[int, int] = {}
        self._progress: deque[tuple[int, int, int]] = deque()
        self._reached = (NONE, NONE)
        self._round: Deferred[None] = succeed(None)
        self._stopped = False
        self.configure(context.settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        #: How long the log is kept.
        self._reserved_ms = settings.store.file_reserved_time * 3_600_000

    # Start and stop.

    def load(self) -> None:
        """I{Blocking.} Find the open transactions, unless they are a master's of this
        slave; the store and the offsets are open.

        @raise OSError: the disk cannot be read.
        """
        self._counts.load()
        if self._services.is_on(CHECKS):
            self._marks.write(self.find())

    def _resume(self) -> Deferred[None]:
        """Find those that the log of a master that is gone has."""
        return self._in_thread(self.find).addCallback(self._mark)

    def find(self) -> list[Over]:
        """I{Blocking.} Learn from the disk which are open.

        @return: the halves that are over, because there is a newer one of theirs.
        """
        half = self._store.queue(HALF_TOPIC, 0)
        op = self._store.queue(OP_HALF_TOPIC, 0)
        self._state.begin(self._kept(HALF_TOPIC, half.min_offset, half.max_offset))
        self._marks.read_offset = self._kept(
            OP_HALF_TOPIC, op.min_offset, op.max_offset
        )
        while (block := self._marks.read(doubting=True)) is not None:
            self._marks.take(block)
        if self._marks.doubted:
            self._log.warn(
                "{count} ended transactions are open again: their messages were lost "
                "with what the disk did not have yet",
                count=self._marks.doubted,
            )
        firsts: dict[tuple[str, int], int] = {}
        topics: dict[int, str] = {}
        older: list[Over] = []
        offset, left = self._state.base, MAX_LOADED
        while left > 0:
            most = min(left, MAX_READ)
            halves = self.read(self.open_from(offset, half.max_offset, most))
            if not halves:
                break
            for each, message in halves:
                if message is not None:
                    topics[each] = message.properties[REAL_TOPIC]
                    # RocketMQ's copies do not say what they are copies of.
                    key = message.unique_key or str(each), message.born_ms
                    if (first := firsts.setdefault(key, each)) != each:
                        self._state.same(each, first)
            older += self._older(halves)
            offset = halves[-1][0] + 1
            left -= len(halves)
        if left > 0:
            gone = {each for each, _ in older}
            still = [topic for each, topic in topics.items() if each not in gone]
            self._counts.begin(Counter(still))
        return older

    def _kept(self, topic: str, first: int, end: int) -> int:
        """The offset that was written down, if the queue has it."""
        offset = self._offsets.query(GROUP, topic, 0)
        return first if offset == NONE else min(max(offset, first), end)

    def start(self) -> None:
        """Begin to check."""
        self._services.begin(CHECKS, self._begin_round, self._resume)
        self._services.begin(MARKS, self._retry)

    def stop(self) -> Deferred[None]:
        """Check no more; fires when no thread reads for it."""
        self._stopped = True
        done: Deferred[None] = Deferred()
        self._round.addBoth(lambda _: done.callback(None))
        return done

    def _retry(self) -> None:
        """Write the marks that wait."""
        if self._marks.waiting:
            self._mark([])

    def _mark(self, over: list[Over]) -> None:
        if self._marks.write(over):
            self._appends.announce()

    def save(self) -> None:
        """Put into the table of offsets how far the checks are, as far as the disk has
        what they stored. A slave's table is a copy of the master's."""
        flushed = self._store.flushed_position
        progress = self._progress
        kept = None
        while progress and progress[0][0] <= flushed:
            kept = progress.popleft()
        if kept is not None and self._services.is_on(CHECKS):
            _, half, op = kept
            if not half and self._offsets.query(GROUP, HALF_TOPIC, 0) == NONE:
                return  # Without transactions nobody sees the group, as in RocketMQ.
            for topic, offset in ((HALF_TOPIC, half), (OP_HALF_TOPIC, op)):
                if self._offsets.query(GROUP, topic, 0) != offset:
                    self._offsets.commit(GROUP, topic, 0, offset)

    # A round.

    def _begin_round(self) -> Deferred[None]:
        over: Deferred[None] = Deferred()
        self._round = over

        def ended(result: T) -> T:
            over.callback(None)
            return result

        return Deferred.fromCoroutine(self._run()).addBoth(ended)

    async def _run(self) -> None:
        end_of_time = self._clock.seconds() + ROUND_SECONDS
        self._appends.dispatch()
        # What this round stores anew is left to the next. Unlike a time of day, which
        # RocketMQ compares here, the end of the queue is never set back.
        end = self._store.queue(HALF_TOPIC, 0).max_offset
        while (block := await self._in_thread(self._marks.read)) is not None:
            self._marks.take(block)
        offset = self._state.base
        while self._goes_on() and self._clock.seconds() < end_of_time:
            wanted = self.open_from(offset, end, MAX_READ)
            if not wanted:
                self._advance(max(offset, end))
                break
            found = await self._in_thread(partial(self.read, wanted))
            if not self._goes_on():
                return
            offset = self._look_at(found)
            self._advance(offset)
            if offset <= found[-1][0]:
                break

    def _goes_on(self) -> bool:
        """Whether a round that is under way is to go on."""
        return not self._stopped and self._services.is_on(CHECKS)

    def open_from(self, offset: int, end: int, most: int) -> list[int]:
        """The next offsets of halves before C{end} that may be open."""
        offset = max(offset, self._store.queue(HALF_TOPIC, 0).min_offset)
        return self._state.open_from(offset, end, most)

    def read(self, offsets: Sequence[int]) -> list[Found]:
        """I{Blocking.} The halves at some offsets, as many as may be held.

        @raise OSError: the disk cannot be read.
        """
        store = self._store
        queue = store.queue(HALF_TOPIC, 0)
        found: list[Found] = []
        size = 0
        for offset in offsets:
            entries = store.entries(queue, offset, 1)
            half = half_at(store, entries[0][0]) if entries else None
            if half is not None and half.queue_offset != offset:
                half = None
            found.append((offset, half))
            size += 0 if half is None else half.size
            if size >= MAX_HELD_BYTES:
                break
        return found

    def _look_at(self, found: Sequence[Found]) -> int:
        """Judge halves, and do what is to be done with them.

        @return: the offset of the first one that is not over.
        """
        store = self._store
        half_queue = store.queue(HALF_TOPIC, 0)
        now_ms = self._wall_ms()
        over = found[-1][0] + 1
        drafts: list[tuple[str, Draft]] = []
        marked = self._older(found)
        for offset, half in found:
            if self._state.is_over(offset):
                continue
            if half is None:
                if not self.is_passed(offset):
                    over = min(over, offset)
                continue
            self._unread.pop(offset, None)
            what = self._judge(half, now_ms)
            if what == _WAIT:
                over = min(over, offset)
                break
            if what != _DISCARD:
                checks = _checks_of(half) + 1 if what == _ASK else None
                draft = renewed(half, half_queue, checks)
                if len(draft.properties) > MAX_BYTES:
                    self._log_too_large(half)
                    what = _DISCARD
            if what == _DISCARD:
                draft = discarded(half, store)
            drafts.append((what, draft))
        if not drafts and not marked:
            return over
        self._appends.append([draft for _, draft in drafts])
        for what, draft in drafts:
            copied = draft.context
            assert isinstance(copied, StoredMessage)
            if draft.status not in (PUT_OK, MESSAGE_ILLEGAL, PROPERTIES_SIZE_EXCEEDED):
                # Those behind it that are stored are marked all the same.
                self.failures += 1
                over = min(over, copied.queue_offset)
                continue
            marked += self._settle(what, copied, draft)
        self._marks.write(marked)
        self._appends.announce()
        self._appends.flush()
        return over

    def _older(self, found: Sequence[Found]) -> list[Over]:
        """The halves that are over because their transaction has a newer one."""
        older: list[Over] = []
        for offset, half in found:
            if half is not None and not self._state.is_over(offset):
                one = self._state.found(half)
                if one is not None:
                    self._state.mark(one)
                    older.append((one, half.position if one != offset else 0))
        return older

    def _judge(self, half: StoredMessage, now_ms: int) -> str:
        """What is to be done with a half."""
        age, options = now_ms - half.born_ms, self._options
        wish = half.properties.get(CHECK_IMMUNITY_SECONDS)
        if wish is None and 0 <= age < options.transaction_time_out:
            return _WAIT
        if age > self._reserved_ms:
            return _DISCARD
        if wish is not None and (
            0 <= age < immunity_ms(wish, options.transaction_time_out)
        ):
            return _SPARE
        if _checks_of(half) >= options.transaction_check_max:
            return _DISCARD
        return _ASK

    def _settle(self, what: str, half: StoredMessage, draft: Draft) -> list[Over]:
        """Do what follows from a copy that is stored, or never can be.

        @return: what is over with it.
        """
        topic = half.properties[REAL_TOPIC]
        if draft.status != PUT_OK:
            self._log_too_large(half)
            what = _DISCARD
        if what == _DISCARD:
            self.discarded += 1
            self._topics.ensure(CHECK_MAX_TIME_TOPIC, 1)
            self._counts.discarded(topic)
            self._log.warn(
                "The transaction of the half message at {offset} for {topic} was never "
                "ended; its message is in {discard_topic}",
                offset=half.queue_offset,
                topic=topic,
                discard_topic=CHECK_MAX_TIME_TOPIC,
            )
            discarded = self._state.discarded(half)
            return [(offset, draft.position) for offset in discarded]
        self._state.renewed(self._state.root(half), draft.queue_offset)
        if what == _ASK:
            self._ask(half, draft)
        return [(half.queue_offset, draft.position)]

    def _ask(self, half: StoredMessage, copy: Draft) -> None:
        """Send the check to one producer of the group, each in turn."""
        members = self._producers.members(half.properties.get(PRODUCER_GROUP, ""))
        self._turn += 1
        for each in range(len(members)):
            connection = members[(self._turn + each) % len(members)].connection
            if not connection.closed and not connection.congested:
                name = self._options.broker_name
                connection.oneway(question(half, copy, self._store_host, name))
                self.asked += 1
                return
        self.unasked += 1

    def _log_too_large(self, half: StoredMessage) -> None:
        self._log.error(
            "The half message at {offset} for {topic} is too large to be stored again; "
            "it is not checked any more",
            offset=half.queue_offset,
            topic=half.properties[REAL_TOPIC],
        )

    def is_passed(self, offset: int) -> bool:
        """Whether a half that cannot be read has been looked at often enough."""
        times = self._unread.get(offset, 0) + 1
        if times < MAX_UNREADABLE:
            self._unread[offset] = times
            return False
        self._unread.pop(offset, None)
        self._state.mark(offset)
        self.unreadable += 1
        self._log.error(
            "The half message at {offset} cannot be read or does not say where it "
            "belongs; it is not checked back",
            offset=offset,
        )
        return True

    def _advance(self, offset: int) -> None:
        """Every half before C{offset} is over."""
        self._state.advance(offset)
        progress = self._state.base, self._marks.needed_offset()
        if progress != self._reached:
            self._reached = progress
            self._progress.append((self._store.published_position, *progress))


def _checks_of(half: StoredMessage) -> int:
    """How often its producer was checked."""
    count = parsed_offset(half.properties.get(TRANSACTION_CHECK_TIMES, ""))
    return 0 if count is None else count
