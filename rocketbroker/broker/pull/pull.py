# -*- test-case-name: tests.broker.pull.test_pull -*-
"""Requests 11 and 361: messages of one queue, now or when they come.

The checks of a pull depend on its group, topic and subscription, hardly ever on the
pull itself; so their outcome is kept as a L{Route} until the topics or groups change,
and an ordinary pull costs a look-up, a read and a template. A pull that fails a check
is answered by the general way alone.

A pull at the end of a queue first has the appended messages dispatched. A pull that
finds nothing may be held (L{LongPolling}); it is then answered from a dispatch or a
timer. Cold messages are read in a thread, a bounded number of pulls at a time.

C{docs/facts/broker.md} 12, 13.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.appends.overload import OVERLOAD
from rocketbroker.broker.appends.send_answers import refuse
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.pull.broadcast_offsets import BroadcastOffsets
from rocketbroker.broker.pull.cold_flow import REFUSAL, WAIT_SECONDS, ColdFlow
from rocketbroker.broker.pull.denied_pulls import PullForbidden, forbidden
from rocketbroker.broker.pull.long_polling import (
    MAX_KEPT_CHARACTERS,
    HeldPull,
    LongPolling,
)
from rocketbroker.broker.pull.pull_checks import PullChecks, Route
from rocketbroker.broker.pull.pull_messages import (
    CORRECTIONS,
    MAX_SUSPENDED_SECONDS,
    OFFSET_RESET,
    Pull,
    code_of,
    fields_of,
    keeps_offsets,
    kept,
    limits,
    nothing,
    ordinary_messages,
    send_answer,
)
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import BrokerError, SystemBusy, SystemFailure
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.reads import FOUND, NO_MATCHED_MESSAGE, ReadResult
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.headers.pull import COMMIT, SUSPEND, PullMessageResponseHeader
from rocketbroker.wire.hot import PullFields, read_pull

#: Pulls of old messages that wait for the disk at the same time. Each holds a place in
#: the queue of the thread pool; beyond it the client is told to slow down.
MAX_COLD: Final = 1024

#: A pull waits so long at a slave without its offset, as clients ask again at once.
ASTRAY_SECONDS: Final = 1.0

#: No queue goes beyond it: a pull that waits for that waits until its time is over.
NEVER: Final = (1 << 63) - 1


@final
class PullRequests:
    """The responder of pulls, which holds those that find nothing.

    @ivar hot_pulls: how many requests went the hot way.
    @ivar general_pulls: how many went the general way.
    @ivar cold_pulls: how many had to wait for the disk.
    @ivar cold_overloads: how many were refused because too many waited for it.
    @ivar missed: how many reads found nothing for the pull.
    @ivar longest_read_ms: how long the longest read took; one that goes the hot way
        touches nothing but memory and is not timed.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        checks: PullChecks,
        offsets: OffsetTable,
        broadcasts: BroadcastOffsets,
        long_polling: LongPolling,
        cold_flow: ColdFlow,
        dispatch: Callable[[], None],
    ) -> None:
        """
        @param dispatch: enters what was appended into the queues, now.
        """
        settings = context.settings
        waiting = context.waiting.family(RequestCode.PULL_MESSAGE)
        self.hot_pulls = 0
        self.general_pulls = 0
        self.cold_pulls = 0
        self.cold_overloads = 0
        self.missed = 0
        self.longest_read_ms = 0.0
        self._general_found = 0
        self._not_hot = 0
        self._cold_since: dict[Pull, float] = {}
        self._store = context.store
        self._checks = checks
        self._offsets = offsets
        self._broadcasts = broadcasts
        self._long_polling = long_polling
        self._cold_flow = cold_flow
        self._options = settings.broker
        self._ordinary = ordinary_messages(settings.store)
        self._keeps_offsets = keeps_offsets(settings.store)
        self._dispatch = dispatch
        self._in_thread = waiting.before_threads(context.in_thread)
        self._seconds = context.clock.seconds

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        self._ordinary = ordinary_messages(settings.store)
        self._keeps_offsets = keeps_offsets(settings.store)

    def found(self) -> int:
        """How many reads found something for the pull."""
        return self.hot_pulls - self._not_hot + self._general_found

    def pulled_elsewhere(self, pulls: int, found: int, missed: int) -> None:
        """Count pulls that workers have taken.

        @param found: how many reads for them found something.
        @param missed: how many did not.
        """
        self.hot_pulls += pulls
        self._not_hot += pulls
        self._general_found += found
        self.missed += missed

    @property
    def cold(self) -> int:
        """How many wait for the disk now."""
        return len(self._cold_since)

    def cold_since_ms(self) -> int:
        """For how many ms the longest of them waits; 0 if none does."""
        begin = next(iter(self._cold_since.values()), None)
        return 0 if begin is None else max(0, int((self._seconds() - begin) * 1000))

    def register(self, table: IResponderTable) -> None:
        """Answer pulls on a port; not on the VIP port, as in RocketMQ."""
        respond = self._checks.compiler.waiting(self.respond)
        table.register(RequestCode.PULL_MESSAGE, respond)
        table.register(RequestCode.LITE_PULL_MESSAGE, respond)
        table.register_hot(RequestCode.PULL_MESSAGE, self.hot)

    def hot(self, connection: IConnection, header: bytes, body: bytes) -> bool:
        """Take a pull that came as JSON and passes all checks."""
        call = read_pull(header)
        if call is None or call.flag & ONEWAY:
            return False
        fields = call.extFields
        try:
            route, queue = self._checks.check(connection, fields)
        except BrokerError:
            return False
        self.hot_pulls += 1
        offset = fields.queueOffset
        assert type(offset) is int
        noted = fields.requestSource or fields.consumerGroup in self._broadcasts.groups
        reset = None
        if noted or self._offsets.resets:
            reset = self._reset(connection, route, fields, queue)
        result = None
        if reset is None:
            most, size = limits(fields, self._ordinary)
            store = self._store
            if route.matches is None:
                result = store.read_warm(queue, offset, most, size)
            elif 0 <= offset < queue.max_offset and not store.is_cold(queue, offset):
                result = store.read(queue, offset, most, size, route.matches)
        if result is None or result.status != FOUND:
            self._not_hot += 1
            pull = Pull(connection, fields, route, queue, call.opaque, None)
            if result is None:
                self._serve(pull, reset)
            else:
                self._found(pull, result, True)
            return True
        group, topic = route.group, route.topic
        next_offset = result.next_offset
        if noted:
            self._broadcasts.pulled(connection, fields, offset)
        self._offsets.commit_pull(group, topic, fields.queueId, next_offset)
        if fields.sysFlag & COMMIT and fields.commitOffset >= 0:
            self._offsets.commit(group, topic, fields.queueId, fields.commitOffset)
        counts = route.counts
        counts.messages += result.count
        counts.bytes += result.size
        counts.pulls += 1
        # What follows messages in memory is in memory, too: no advice to go elsewhere.
        broker_id, opaque = route.broker_id, call.opaque
        topic_flag, group_flag = route.topic_flag, route.group_flag
        send_answer(connection, opaque, 0, result, broker_id, topic_flag, group_flag)
        return True

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """Take a pull of any form, or say why not."""
        self.general_pulls += 1
        fields = fields_of(request)
        lite = request.code == RequestCode.LITE_PULL_MESSAGE
        if lite and not self._options.lite_pull_message_enable:
            return forbidden(PullForbidden(1, "lite pull is forbidden"))
        try:
            route, queue = self._checks.check(connection, fields)
        except PullForbidden as error:
            return forbidden(error)
        done: Deferred[Command | None] = Deferred()
        reset = self._reset(connection, route, fields, queue)
        self._serve(Pull(connection, fields, route, queue, 0, done), reset)
        return done

    def _reset(
        self, connection: IConnection, route: Route, fields: PullFields, queue: IQueue
    ) -> int | None:
        """Where a pull that has just come is to go on instead of at its offset."""
        offset = fields.queueOffset
        assert type(offset) is int
        reset = self._offsets.reset_for_pull(
            connection, route.group, route.topic, fields.queueId, offset
        )
        if reset is None:
            reset = self._broadcasts.initial(connection, fields, queue)
        return reset

    def reset(self, group: str, queue: IQueue, offset: int) -> None:
        """Let a group go on at C{offset}, whatever it waits for.

        Its held pulls are answered at once.
        """
        self._offsets.reset(group, queue.topic, queue.queue_id, offset)

        def outdated(held: HeldPull) -> bool:
            assert isinstance(held.request, Pull)
            return held.request.route.group == group

        self._long_polling.release(queue, outdated)

    def _serve(self, pull: Pull, reset: int | None) -> None:
        """Read for a pull that has just come.

        @param reset: where it is sent instead of its offset, if it is.
        """
        fields, queue = pull.fields, pull.queue
        offset = fields.queueOffset
        assert type(offset) is int
        if reset is not None:
            self._found(pull, nothing(OFFSET_RESET, queue, reset), True)
            return
        if offset >= queue.max_offset:
            self._dispatch()
        elif self._store.is_cold(queue, offset):
            self._read_cold(pull, True)
            return
        self._found(pull, self._read(pull), True)

    def _read(self, pull: Pull) -> ReadResult:
        offset = pull.fields.queueOffset
        assert type(offset) is int
        most, size = limits(pull.fields, self._ordinary)
        begin = self._seconds()
        result = self._store.read(pull.queue, offset, most, size, pull.route.matches)
        took_ms = (self._seconds() - begin) * 1000.0
        pull.read_ms = int(took_ms)
        if took_ms > self.longest_read_ms:
            self.longest_read_ms = took_ms
        return result

    def _read_cold(self, pull: Pull, first: bool) -> None:
        """Read in a thread, unless the group has read too much of what is cold."""
        if not pull.waited and self._cold_flow.limits(pull.route.group):
            may_wait = self._cold_flow.may_wait(pull.route.group)
            resume = self._resume_cold
            if not may_wait or not self._hold(pull, NEVER, WAIT_SECONDS, resume):
                self._cold_flow.refused += 1
                self._refuse(pull, SystemBusy(REFUSAL))
            return
        if self.cold >= MAX_COLD:
            self.cold_overloads += 1
            self._refuse(pull, SystemBusy(OVERLOAD))
            return
        self._cold_since[pull] = self._seconds()
        self.cold_pulls += 1
        begin = pull.queue.from_position

        def ended(result: ReadResult | Failure) -> None:
            del self._cold_since[pull]
            if isinstance(result, Failure) and isinstance(result.value, SystemBusy):
                self._refuse(pull, result.value)
            elif isinstance(result, Failure):
                self._log.error("A read failed: {why}", why=result.getErrorMessage())
                self._refuse(pull, SystemFailure(result.getErrorMessage()))
            elif pull.connection.crowded or pull.queue.from_position != begin:
                # Many were read at once, and peers do not take their answers; or the
                # topic was deleted meanwhile.
                self._ask_again(pull)
            else:
                self._cold_flow.read(pull.route.group, result.size)
                self._found(pull, result, first)

        done = self._in_thread(lambda: self._read(pull))
        done.addBoth(ended).addErrback(self._unexpected)

    def _resume_cold(self, held: HeldPull) -> None:
        """One has waited: if its group still may not read, it gets one message."""
        pull = held.request
        assert isinstance(pull, Pull)
        pull.waited = True
        if self._cold_flow.limits(pull.route.group):
            pull.fields.maxMsgNums = 1
        self._resume(held)

    def _unexpected(self, failure: Failure) -> None:
        self._log.failure("A pull could not be answered.", failure=failure)

    def _found(self, pull: Pull, result: ReadResult, first: bool) -> None:
        """Commit and hold a pull that has just come (C{first}), or answer it."""
        fields, route = pull.fields, pull.route
        offset = fields.queueOffset
        assert type(offset) is int
        flag = fields.sysFlag
        group, topic, queue_id = route.group, route.topic, fields.queueId
        code, is_astray = code_of(result.status, offset), False
        if self._keeps_offsets:
            result = kept(result, offset)
            if code == ResponseCode.PULL_OFFSET_MOVED:
                code = ResponseCode.PULL_RETRY_IMMEDIATELY
                is_astray = result.status in CORRECTIONS
        if result.count:
            self._general_found += 1
        elif result.status != OFFSET_RESET:
            self.missed += 1
        self._broadcasts.pulled(
            pull.connection,
            fields,
            result.next_offset if code == ResponseCode.PULL_OFFSET_MOVED else offset,
        )
        self._offsets.commit_pull(group, topic, queue_id, result.next_offset)
        if first and not self._offsets.has_reset(group, topic, queue_id):
            if flag & COMMIT and fields.commitOffset >= 0:
                self._offsets.commit(group, topic, queue_id, fields.commitOffset)
            if (code == ResponseCode.PULL_NOT_FOUND or is_astray) and flag & SUSPEND:
                most = ASTRAY_SECONDS if is_astray else MAX_SUSPENDED_SECONDS
                seconds = min(fields.suspendTimeoutMillis / 1000.0, most)
                until = NEVER if is_astray else offset
                if self._hold(pull, until, seconds, self._resume):
                    return
        self._answer(pull, code, result)

    def _hold(
        self,
        pull: Pull,
        offset: int,
        seconds: float,
        resume: Callable[[HeldPull], None],
    ) -> bool:
        """Let a pull wait until its queue goes beyond C{offset}, or its time is over;
        whether it does."""
        if len(pull.fields.subscription or "") > MAX_KEPT_CHARACTERS:
            return False
        matches = pull.route.matches
        return self._long_polling.hold(
            HeldPull(
                pull.connection, pull.queue, offset, matches, seconds, resume, pull
            )
        )

    def _resume(self, held: HeldPull) -> None:
        """A held pull was woken: answer whatever there is."""
        pull = held.request
        assert isinstance(pull, Pull)
        pull.read_ms = 0
        connection, offset = held.connection, pull.fields.queueOffset
        assert type(offset) is int
        if connection.closed:
            return
        if connection.congested or connection.crowded:
            # What it has asked for before waits to be sent: let it ask again.
            self._ask_again(pull)
            return
        try:
            pull.route, pull.queue = self._checks.check(connection, pull.fields)
        except BrokerError:
            # It may not any more: the answer to its next pull says why.
            self._ask_again(pull)
            return
        queue = pull.queue
        if self._offsets.resets:
            group, topic = pull.route.group, pull.route.topic
            reset = self._offsets.reset_for_held(
                connection, group, topic, queue.queue_id
            )
            if reset == offset:
                # It is there already, which only a pull that has just come can say.
                self._ask_again(pull)
                return
            if reset is not None:
                code = ResponseCode.PULL_OFFSET_MOVED
                self._answer(pull, code, nothing(OFFSET_RESET, queue, reset))
                return
        if pull.route.matches is None:
            # What woke it is nearly always in memory; the way below costs more.
            most, size = limits(pull.fields, self._ordinary)
            result = self._store.read_warm(queue, offset, most, size)
            if result is not None:
                self._found(pull, result, False)
                return
        if self._store.is_cold(queue, offset):
            self._read_cold(pull, False)
            return
        self._found(pull, self._read(pull), False)

    def _ask_again(self, pull: Pull) -> None:
        """Let a held pull ask again at its offset."""
        queue, offset = pull.queue, pull.fields.queueOffset
        assert type(offset) is int
        result = nothing(NO_MATCHED_MESSAGE, queue, offset)
        self._answer(pull, ResponseCode.PULL_RETRY_IMMEDIATELY, result)

    def _answer(self, pull: Pull, code: int, result: ReadResult) -> None:
        """Send the answer."""
        route = pull.route
        broker_id = route.broker_id
        if route.slow_broker_id and self._store.is_cold(pull.queue, result.next_offset):
            broker_id = route.slow_broker_id
        if result.count:
            counts = route.counts
            counts.messages += result.count
            counts.bytes += result.size
            counts.pulls += 1
            counts.read_ms += pull.read_ms
        if pull.done is not None:
            pull.done.callback(self._command(pull, code, result, broker_id))
            return
        flags = route.topic_flag, route.group_flag
        send_answer(pull.connection, pull.opaque, code, result, broker_id, *flags)

    def _command(
        self, pull: Pull, code: int, result: ReadResult, broker_id: int
    ) -> Command:
        header = PullMessageResponseHeader(
            suggest_which_broker_id=broker_id,
            next_begin_offset=result.next_offset,
            min_offset=result.min_offset,
            max_offset=result.max_offset,
            topic_sys_flag=pull.route.topic_flag,
            group_sys_flag=pull.route.group_flag,
        )
        body = b"".join(result.records)
        return Command(code, header.to_ext(), body, remark=result.status)

    def _refuse(self, pull: Pull, error: BrokerError) -> None:
        if pull.done is not None:
            pull.done.callback(Command(error.code, remark=error.remark))
        else:
            refuse(pull.connection, pull.opaque, error)
