# -*- test-case-name: tests.broker.pop.test_pop -*-
"""Request 200050: the next messages of a topic for a group, from any of its queues.

A pop goes through the queues of its topic, beginning with another each time, until it
has enough; a fifth of the pops look into the retry topic first, the others last. What
it takes of a queue becomes a check point (L{pop_collect}), after which the queue's next
pop goes on at once: members of a group share a queue message by message.
Consumers in order instead wait for one another (L{order_info}).

A pop is answered when its check points are in the log, at the end of its turn. Cold
messages are read in a thread; meanwhile no other pop of the group reads that queue. One
that finds nothing waits (L{pop_polling}). Where a pop can be, and what leads from there
to where, is a table (L{pop_request}).

C{docs/facts/transaction-timer-pop.md} C2 to C4; C{docs/facts/broker.md} 20.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Final, final

from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.clients.sql_compiler import NotCompiled
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.offsets import NONE
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pop.pop_checks import PopChecks, PopRoute
from rocketbroker.broker.pop.pop_collect import PopCollect
from rocketbroker.broker.pop.pop_polling import (
    LEAST_SECONDS,
    HeldPop,
    HoldResult,
    PopLongPolling,
)
from rocketbroker.broker.pop.pop_request import (
    MAX_BYTES,
    Pop,
    PopInput,
    PopLook,
    Source,
    first_offset,
)
from rocketbroker.broker.pop.pop_state import PopState
from rocketbroker.broker.pop.progress import Line, Place
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import BrokerError, SystemFailure
from rocketbroker.records.names import is_retry_topic
from rocketbroker.records.receipt_handle import ORDERED
from rocketbroker.remoting.cooperative_tasks import only_stopped
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
    ISlices,
)
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.reads import (
    OFFSET_FOUND_NULL,
    OFFSET_OVERFLOW_BADLY,
    OFFSET_TOO_SMALL,
    ReadResult,
)
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import PopMessageRequestHeader

#: A pop that has been on its way for so long beyond its time is not begun, in ms.
MAX_LATE_MS: Final = 500

#: So many queues are looked at in one turn: three milliseconds.
STEP_SOURCES: Final = 512

#: Required fields that a pop does well without.
NOT_NEEDED: Final = frozenset(("bornTime", "initMode"))

#: What a read finds that says where else to read.
_CORRECTED: Final = frozenset(
    (OFFSET_TOO_SMALL, OFFSET_OVERFLOW_BADLY, OFFSET_FOUND_NULL)
)

# Members of an enumeration are slow to look up.
_AWAIT: Final = PopInput.AWAIT

#: Which pops look into retry topics first is spread by this step, prime to 100.
_STEP: Final = 37


@final
class PopRequests:
    """The responder of request 200050.

    @ivar requests: how many came.
    @ivar found: how many were answered with messages.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        state: PopState,
        checks: PopChecks,
        collect: PopCollect,
        polling: PopLongPolling,
        dispatch: Callable[[], None],
    ) -> None:
        """
        @param polling: the pops that wait.
        @param dispatch: enters what was appended into the queues, now.
        """
        self.requests = 0
        self.found = 0
        self._clock = context.clock
        self._store = context.store
        self._checks = checks
        self._collect = collect
        self._topics = metadata.topics
        self._offsets = metadata.offsets
        self._retry_topics = state.retry_topics
        self._progress = state.progress
        self._order = state.order
        self._polling = polling
        self._revive_log = state.log
        self._options = context.settings.broker
        self._dispatch = dispatch
        self._wall_ms = context.wall_ms
        self._in_thread: InThread = context.in_thread
        self._turns = context.turns
        self._slices: ISlices = context.slices
        self._turn = 0

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def register(self, table: IResponderTable) -> None:
        """Answer on a port; not on the VIP port, as in RocketMQ."""
        respond = self._checks.compiler.waiting(self.respond)
        table.register(RequestCode.POP_MESSAGE, respond)

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """Take a pop, or say why not."""
        self.requests += 1
        if request.ext is None:
            raise SystemFailure("the request has no header fields")
        header = PopMessageRequestHeader.complete(request.ext, NOT_NEEDED)
        now_ms = self._wall_ms()
        if not header.born_time:
            header.born_time = now_ms
        if now_ms - header.born_time - header.poll_time > MAX_LATE_MS:
            return Command(
                ResponseCode.POLLING_TIMEOUT,
                remark=f"the broker[{self._options.broker_ip1}] pop message is timeout",
            )
        self._revive_log.check_role()
        self._checks.check_pop(header.max_msg_nums)
        route = self._route(header)
        pop = Pop(connection, header, route, self._look(header, route))
        self._go_on(pop)
        return pop.done

    def _route(self, header: PopMessageRequestHeader) -> PopRoute:
        return self._checks.check(
            header.consumer_group,
            header.topic,
            header.queue_id,
            header.exp_type,
            header.exp or "",
        )

    def _look(self, header: PopMessageRequestHeader, route: PopRoute) -> PopLook:
        """A look that is about to begin."""
        revive_queue = ORDERED if header.order else self._revive_log.next_queue()
        sources = self._sources(header, route)
        is_wide = len(sources) > STEP_SOURCES
        return PopLook(self._wall_ms(), revive_queue, iter(sources), is_wide)

    def _sources(
        self, header: PopMessageRequestHeader, route: PopRoute
    ) -> list[Source]:
        """The queues to look at, in this order."""
        self._turn += 1
        turn = self._turn
        topic = header.topic
        queues = route.read_queues
        if header.queue_id >= 0:
            sources = [(topic, header.queue_id)]
        else:
            sources = [(topic, (turn + n) % queues) for n in range(queues)]
        if header.order or is_retry_topic(topic):
            return sources
        retry = self._retry_topics.read(header.consumer_group, topic, turn)
        config = self._topics.config(retry)
        if config is None:
            return sources
        queues = config.read_queue_nums
        retries = [(retry, (turn + n) % queues) for n in range(queues)]
        if turn * _STEP % 100 < self._options.pop_from_retry_probability:
            return retries + sources
        return sources + retries

    def _go_on(self, pop: Pop) -> None:
        """Look at the queues that are left; C{_finish} at the end.

        After L{STEP_SOURCES} the next are for slices. Messages may come meanwhile, of
        which nobody would tell the pop, as it does not wait yet.
        """
        look = pop.look
        looked = 0
        for topic, queue_id in look.sources:
            looked += 1
            if looked > STEP_SOURCES:
                look.sources = chain([(topic, queue_id)], look.sources)
                pop.on(PopInput.PAUSE)
                step = self._slices.run(pop.connection, self._step(pop))
                step.addErrback(only_stopped).addErrback(self._unexpected)
                return
            place = pop.route.group, topic, queue_id
            try:
                queue = self._store.queue(topic, queue_id)
            except BrokerError:
                # There is no room for its files now, so that it has no messages.
                continue
            if look.seen is not None:
                look.seen.append((queue, queue.max_offset))
            if pop.is_full and not pop.header.order:
                # Of most queues it only has to be told how much is left.
                offset = self._progress.next_offset(place)
                if offset != NONE:
                    self._add_rest(look, queue, offset)
                    continue
            line = self._progress.line(place)
            self._dispatch_to(queue, place)
            if line.is_busy or self._is_over_threshold(place):
                if not pop.header.order:
                    self._add_rest(look, queue, self._progress.next_offset(place))
                continue
            offset = self._pop_offset(pop, place, queue)
            if pop.header.order and self._is_blocked(pop, place):
                continue
            if pop.is_full:
                self._add_rest(look, queue, offset)
                continue
            if self._store.is_cold(queue, offset):
                self._read_cold(pop, place, line, queue, offset)
                return
            found = self._read(pop, queue, offset)
            self._collect.take(pop, place, line, *found)
        self._finish(pop)

    def _step(self, pop: Pop) -> Iterator[None]:
        """Go on with a pop, in a turn of its own."""
        if pop.connection.closed:
            pop.on(PopInput.DROP)
        else:
            pop.on(PopInput.RESUME)
            self._turns.within(partial(self._go_on, pop))
        yield

    def _dispatch_to(self, queue: IQueue, place: Place) -> None:
        """Have what was appended to a queue dispatched, if the group is at its end.

        Others may be woken, and pop first: nothing is known of the queue yet."""
        end = queue.max_offset
        if queue.next_offset > end:
            offset = self._progress.next_offset(place)
            if offset >= end or offset == NONE:
                self._dispatch()

    def _add_rest(self, look: PopLook, queue: IQueue, offset: int) -> None:
        look.rest += max(0, queue.max_offset - max(offset, queue.min_offset))

    def _is_over_threshold(self, place: Place) -> bool:
        """With enablePopMessageThreshold: whether the group has too much in flight."""
        return (
            self._options.enable_pop_message_threshold
            and self._progress.in_flight(*place)
            > self._options.pop_inflight_message_threshold
        )

    def _is_blocked(self, pop: Pop, place: Place) -> bool:
        """Whether the group may get nothing more of a queue yet, as it is in order."""
        header, look = pop.header, pop.look
        free_ms = self._order.free_ms(place, header.attempt_id, header.invisible_time)
        if free_ms > look.pop_ms:
            look.free_ms = min(look.free_ms or free_ms, free_ms)
            return True
        self._progress.clear_in_flight(place)
        return False

    def _pop_offset(self, pop: Pop, place: Place, queue: IQueue) -> int:
        """Where the group goes on in a queue."""
        group, topic, queue_id = place
        reset = self._offsets.reset_for_pop(group, topic, queue_id)
        if reset is not None:
            self._order.forget(place)
            self._progress.forget(place)
            self._offsets.commit(group, topic, queue_id, reset)
            return reset
        offset = self._progress.next_offset(place)
        if offset == NONE:
            offset = first_offset(
                self._store, self._options, queue, pop.header.init_mode
            )
            self._offsets.commit(group, topic, queue_id, offset)
        return offset

    # The messages.

    def _read(
        self, pop: Pop, queue: IQueue, offset: int
    ) -> tuple[int, int, ReadResult]:
        """I{Blocking if cold.} Messages from C{offset} on.

        @return: that offset, where the read began instead, and its result.
        """
        look = pop.look
        most, size = pop.header.max_msg_nums - look.count, MAX_BYTES - look.size
        matches, read = pop.route.matches, self._store.read
        result = read(queue, offset, max(most, 1), size, matches)
        if result.status not in _CORRECTED:
            return offset, offset, result
        begin = result.next_offset
        return offset, begin, read(queue, begin, max(most, 1), size, matches)

    def _read_cold(
        self, pop: Pop, place: Place, line: Line, queue: IQueue, offset: int
    ) -> None:
        """Read in a thread, and go on then."""
        line.is_busy = True
        pop.on(PopInput.READ)

        def read(found: tuple[int, int, ReadResult] | Failure) -> None:
            line.is_busy = False
            if isinstance(found, Failure):
                # The other queues may be readable.
                self._log.failure("Messages could not be popped.", failure=found)
            elif pop.connection.closed:
                pop.on(PopInput.DROP)
                return
            pop.on(PopInput.RESUME)
            if not isinstance(found, Failure):
                self._collect.take(pop, place, line, *found)
            self._go_on(pop)

        def ended(found: tuple[int, int, ReadResult] | Failure) -> None:
            self._turns.within(partial(read, found))

        done = self._in_thread(lambda: self._read(pop, queue, offset))
        done.addBoth(ended).addErrback(self._unexpected)

    def _unexpected(self, failure: Failure) -> None:
        self._log.failure("A pop could not be answered.", failure=failure)

    # The answer.

    def _finish(self, pop: Pop) -> None:
        """All queues were looked at: answer, or wait."""
        header, look = pop.header, pop.look
        if look.count:
            self.found += 1
            is_stored = not look.pending
            if not is_stored:
                pop.on(_AWAIT)
            if look.rest:
                self._polling.wake(header.topic, header.consumer_group, header.queue_id)
            if is_stored:
                pop.answer(ResponseCode.SUCCESS)
            return
        held = self._hold(pop)
        if held is HoldResult.FULL:
            pop.answer(ResponseCode.POLLING_FULL)
            return
        if held is HoldResult.EXPIRED:
            pop.answer(ResponseCode.POLLING_TIMEOUT)
            return
        pop.on(PopInput.HOLD)
        if (look.has_passed and look.rest) or look.is_overtaken:
            # What it wants may be further on, or in a queue that it has left behind.
            self._clock.callLater(0, self._look_on, header)

    def _look_on(self, header: PopMessageRequestHeader) -> None:
        wake = self._polling.wake
        self._turns.within(
            lambda: wake(header.topic, header.consumer_group, header.queue_id)
        )

    def _hold(self, pop: Pop) -> HoldResult:
        header, now = pop.header, self._clock.seconds()
        if header.poll_time <= 0:
            return HoldResult.EXPIRED
        now_ms = self._wall_ms()
        over = now + (header.born_time + header.poll_time - now_ms) / 1000
        if over - LEAST_SECONDS <= now:
            return HoldResult.EXPIRED
        free_ms = pop.look.free_ms
        if free_ms and self._options.enable_notify_after_pop_order_lock_release:
            # It looks again then, and waits on if it finds nothing.
            free = now + (free_ms - now_ms) / 1000 + 2 * LEAST_SECONDS
            over = min(over, free)
        return self._polling.hold(
            HeldPop(
                pop.connection,
                (header.topic, header.consumer_group),
                header.queue_id,
                over,
                pop.route.matches,
                partial(self._resume, pop),
            )
        )

    def _resume(self, pop: Pop) -> None:
        """One that has waited looks again."""
        connection = pop.connection
        if connection.closed:
            pop.on(PopInput.DROP)
            return
        if connection.congested or connection.crowded:
            # What it has asked for before waits to be sent: let it ask again.
            pop.answer(ResponseCode.POLLING_TIMEOUT)
            return
        try:
            self._revive_log.check_role()
            pop.route = self._route(pop.header)
        except NotCompiled:
            # All else is checked, and its expression was compiled once: it keeps that.
            pass
        except BrokerError as error:
            pop.refuse(error)
            return
        pop.on(PopInput.RESUME)
        pop.look = self._look(pop.header, pop.route)
        self._go_on(pop)
