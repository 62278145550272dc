# -*- test-case-name: tests.workers.test_worker_pulls -*-
"""The pulls that a worker answers itself.

They are those that go the hot way in the owner and find something in memory, by routes
that the owner has told: what a group wants of a queue, and what its answers say. Each
turn looks at the version word, and each read once more behind it: when it differs from
that of the last PULLS, the pull is relayed, as all are until the next PULLS comes.

A pull at the end of its queue waits here, if it is to wait and its filter is by tags.
The owner is told where pulls wait, and says once when that queue has grown. A route
that does not hold any more by then lets the pull ask again, as the owner does it.

How far groups have come is told to the owner at most once in L{REPORT_SECONDS}, and in
any case before anything is relayed that came later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, final

from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from rocketbroker.broker.pull.long_polling import (
    MAX_KEPT_CHARACTERS,
    HeldPull,
    LongPolling,
)
from rocketbroker.broker.pull.pull_messages import (
    MAX_SUSPENDED_SECONDS,
    code_of,
    limits,
    nothing,
    ordinary_messages,
    send_answer,
)
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.filtering import sql, tags
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.interfaces import HubReactor, IConnection
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import Arrival
from rocketbroker.store.reads import (
    NO_MATCHED_MESSAGE,
    OFFSET_OVERFLOW_ONE,
    Matches,
    MessageFilter,
    ReadResult,
)
from rocketbroker.store.sharing.joined_reading import JoinedReading
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import ONEWAY
from rocketbroker.wire.headers.pull import COMMIT, SUBSCRIPTION, SUSPEND
from rocketbroker.wire.hot import PullFields, PullHeader, read_pull
from rocketbroker.workers.link_frames import (
    WAIT_WORDS,
    WAKE_ALL,
    WAKE_WORD,
    Kind,
    link_frame,
)
from rocketbroker.workers.link_messages import (
    AskPull,
    PullAllowance,
    Pulled,
    PullRoute,
    QueuePulls,
    encode,
)

if TYPE_CHECKING:
    from rocketbroker.workers.relay import OwnerRelay
    from rocketbroker.workers.relayed_client import RelayedClient

#: The owner is told of pulls once in this time.
REPORT_SECONDS: Final = 0.1

#: A route that the owner has not given is asked for again after so long.
ASK_AGAIN_SECONDS: Final = 1.0

#: So many questions and routes are remembered; clients can name any topic.
MAX_ROUTES: Final = 8192

#: How often pulls that wait are looked at, whatever their filters, as in the owner.
CHECK_SECONDS: Final = 5.0

#: As many of a queue's new entries are looked at when it has grown.
NEW_ENTRIES: Final = 4096

#: Behind the end of any queue.
NOWHERE: Final = 1 << 63

#: Of a route: group, topic, queue, and the subscription if the pull has brought it.
_Key: TypeAlias = tuple[str, str, int, str | None, str | None]

#: The type of a subscription that the group is registered with.
_REGISTERED: Final = "\0registered"


@final
class OwnRoute:
    """How pulls of one group from one queue are answered.

    @ivar told: what the owner has said of it.
    @ivar queue: the handle.
    @ivar matches: what is wanted.
    @ivar row: what was pulled and the owner has not been told of.
    """

    __slots__ = ("matches", "queue", "row", "told")

    def __init__(self, told: PullRoute, queue: Queue, matches: Matches) -> None:
        ask = told.ask
        self.told = told
        self.queue = queue
        self.matches = matches
        queue_id, begin = ask.queue_id, told.from_position
        self.row = QueuePulls(ask.group, ask.topic, queue_id, begin, 0, 0, 0, 0, -1)


@final
class OwnPulls:
    """The responder of pulls that a worker answers itself.

    @ivar version: of what the owner has allowed; 0: nothing.
    @ivar answered: how many pulls were answered.
    @ivar polling: those that wait.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: HubReactor,
        open_files: OpenFiles,
        hub: Hub,
        relay: OwnerRelay,
    ) -> None:
        self.version = 0
        self.answered = 0
        self.polling: LongPolling | None = None
        self._reactor = reactor
        self._open_files = open_files
        self._hub = hub
        self._relay = relay
        self._reading: JoinedReading | None = None
        self._ordinary = 0
        self._turn = -1
        self._routes: dict[_Key, OwnRoute] = {}
        self._asked: dict[_Key, float] = {}
        self._touched: dict[OwnRoute, None] = {}
        #: Where pulls wait, by slot: the queue and its end when that was looked at.
        self._ends: dict[int, tuple[Queue, int]] = {}
        self._pulls = self._found = self._missed = 0
        self._bytes_in = self._answers = 0
        self._seconds = 0.0
        self._report_call: IDelayedCall | None = None
        self._check_call: IDelayedCall | None = None

    # What the owner says.

    def allow(self, allowance: PullAllowance) -> None:
        """Answer by this from now on."""
        self._forget()
        if allowance.version and self._join(allowance):
            self.version = allowance.version

    def _join(self, allowance: PullAllowance) -> bool:
        """Join the store, if that is not done; whether it is."""
        options = allowance.store_options()
        waits = BrokerOptions(**allowance.broker)
        self._ordinary = ordinary_messages(options)
        if self._reading is not None and self.polling is not None:
            self._reading.configure(options)
            self.polling.obey(waits)
            return True
        try:
            self._reading = JoinedReading(
                self._open_files, options, allowance.memory_bytes
            )
        except OSError as error:
            self._log.error("The store cannot be joined: {error}.", error=error)
            return False
        clock: object = self._reactor
        self.polling = LongPolling(
            clock,  # type: ignore[arg-type]  # a reactor tells the time, too
            self._reading,
            waits,
            self._hub.turns,
        )
        self._check_call = self._reactor.callLater(CHECK_SECONDS, self._check)
        return True

    def route(self, told: PullRoute) -> None:
        """The owner says how such pulls are to be answered."""
        reading, ask = self._reading, told.ask
        if told.version != self.version or reading is None:
            return
        if len(self._routes) >= MAX_ROUTES:
            self._forget_routes()
        matches: Matches = None
        try:
            if tags.is_tag_type(told.expression_type):
                matches = tags.parse(told.expression, told.expression_type).matcher()
            else:
                compiled = sql.compiled(told.expression or "")
                cost, hint = compiled.cost_ns, compiled.hint
                matches = MessageFilter(None, compiled.matches, None, cost, hint)
            slot, trusted = told.slot, told.trusted_from
            queue = reading.queue(ask.topic, ask.queue_id, slot, trusted)
        except (OSError, SubscriptionParseFailed) as error:
            self._log.error("Pulls cannot be answered: {error}.", error=error)
            return
        kind = ask.expression_type if ask.is_own else _REGISTERED
        key = ask.group, ask.topic, ask.queue_id, ask.subscription, kind
        self._routes[key] = OwnRoute(told, queue, matches)

    def woken(self, payload: bytes) -> None:
        """A queue has grown, or all pulls that wait are to be answered."""
        slot: int = WAKE_WORD.unpack(payload)[0]
        polling = self.polling
        if polling is None:
            return
        if slot == WAKE_ALL:
            self._ends.clear()
            polling.wake_all()
        elif slot in self._ends:
            self._grown(*self._ends.pop(slot), polling)

    def _grown(self, queue: Queue, seen: int, polling: LongPolling) -> None:
        """Wake who waits for what is new in a queue."""
        end, reading = queue.max_offset, self._reading
        codes: list[int] = []
        if reading is not None and polling.wants_codes(queue):
            first = max(seen, end - NEW_ENTRIES)
            entries = reading.entries(queue, first, end - first)
            codes = [code for _, _, code in entries]
            if not codes or reading.version != self.version:
                # Nobody knows what stands there: it may be another topic by now.
                polling.check()
        polling.wake(Arrival(queue, codes or [0]))
        if polling.waits_in(queue):
            self._wait(queue, end)

    # Pulls.

    @property
    def held(self) -> int:
        """How many pulls wait."""
        return self.polling.held if self.polling is not None else 0

    @property
    def is_unreported(self) -> bool:
        """Whether the owner has not been told of all."""
        return bool(self._touched)

    def take(self, client: RelayedClient, header: bytes, size: int) -> bool:
        """See L{TakesPulls.take
        <rocketbroker.workers.relayed_client.TakesPulls.take>}."""
        reading, connection = self._reading, client.connection
        if reading is None or not self._begin(reading):
            return False
        call = read_pull(header)
        if call is None or call.flag & ONEWAY or call.extFields.requestSource:
            return False
        fields = call.extFields
        route = self._route_of(fields, client)
        if route is None:
            return False
        offset = fields.queueOffset
        assert type(offset) is int
        queue = route.queue
        if offset == queue.max_offset:
            if not self._hold(connection, call, route, offset):
                return False
            self._missed += 1
            self._note(route, offset)
        else:
            most, room = limits(fields, self._ordinary)
            version, matches = self.version, route.matches
            result = reading.read(queue, offset, most, room, matches, version)
            if result is None:
                return False
            self._answer(connection, call.opaque, route, result, offset)
        if fields.sysFlag & COMMIT and fields.commitOffset >= 0:
            route.row.commit_offset = fields.commitOffset
        self.answered += 1
        self._pulls += 1
        self._bytes_in += size
        self._seconds = self._hub.seconds() - self._hub.now
        return True

    def _begin(self, reading: JoinedReading) -> bool:
        """Whether pulls are answered now: looks once in a turn whether all is still as
        it was."""
        if self._turn != self._hub.turn_count:
            self._turn = self._hub.turn_count
            if self.version and reading.version != self.version:
                self._forget()
        return self.version != 0

    def _route_of(self, fields: PullFields, client: RelayedClient) -> OwnRoute | None:
        """The route of a pull; asks for it if there is none."""
        is_own = bool(fields.sysFlag & SUBSCRIPTION)
        text = fields.subscription if is_own else None
        kind = fields.expressionType if is_own else _REGISTERED
        key = fields.consumerGroup, fields.topic, fields.queueId, text, kind
        route = self._routes.get(key)
        if route is not None:
            if is_own or fields.subVersion <= route.told.sub_version:
                return route
            return None
        now = self._hub.now
        if now < self._asked.get(key, 0.0) or len(text or "") > MAX_KEPT_CHARACTERS:
            return None
        if len(self._asked) >= MAX_ROUTES:
            self._asked.clear()
        self._asked[key] = now + ASK_AGAIN_SECONDS
        ask = AskPull(
            client.id,
            fields.consumerGroup,
            fields.topic,
            fields.queueId,
            is_own,
            text,
            fields.expressionType if is_own else None,
            fields.subVersion,
        )
        self._relay.tell(link_frame(Kind.ASK_PULL, 0, encode(ask)))
        return None

    def _answer(
        self,
        connection: IConnection,
        opaque: int,
        route: OwnRoute,
        result: ReadResult,
        offset: int,
    ) -> None:
        """Send the answer, and count it."""
        self._note(route, result.next_offset)
        row, told = route.row, route.told
        self._answers += 1
        if not result.count:
            self._missed += 1
        else:
            self._found += 1
            row.messages += result.count
            row.bytes += result.size
            row.pulls += 1
        code = code_of(result.status, offset)
        flags = told.topic_flag, told.group_flag
        send_answer(connection, opaque, code, result, told.broker_id, *flags)

    def _note(self, route: OwnRoute, next_offset: int) -> None:
        """The owner is to be told how far a group is."""
        route.row.next_offset = next_offset
        self._touched[route] = None
        if self._report_call is None:
            self._report_call = self._reactor.callLater(REPORT_SECONDS, self.report)

    # Those that wait.

    def _hold(
        self, connection: IConnection, call: PullHeader, route: OwnRoute, offset: int
    ) -> bool:
        """Let a pull wait for messages, if it may."""
        fields, queue, polling = call.extFields, route.queue, self.polling
        reading = self._reading
        if (
            polling is None
            or reading is None
            or reading.version != self.version
            or not fields.sysFlag & SUSPEND
            or isinstance(route.matches, MessageFilter)
        ):
            return False
        seconds = min(fields.suspendTimeoutMillis / 1000.0, MAX_SUSPENDED_SECONDS)
        request = call, route
        held = HeldPull(
            connection, queue, offset, route.matches, seconds, self._resume, request
        )
        if not polling.hold(held):
            return False
        _, seen = self._ends.get(queue.slot, (queue, NOWHERE))
        if offset < seen:
            # Nobody waits there yet, or those that do waited in a deleted topic.
            self._wait(queue, offset)
        return True

    def _wait(self, queue: Queue, end: int) -> None:
        """Let the owner say when a queue has grown."""
        self._ends[queue.slot] = queue, end
        payload = WAIT_WORDS.pack(queue.slot, end)
        self._relay.tell(link_frame(Kind.WAIT, 0, payload))

    def _resume(self, held: HeldPull) -> None:
        """One that has waited: answer whatever there is."""
        request = held.request
        assert isinstance(request, tuple)
        call: PullHeader = request[0]
        route: OwnRoute = request[1]
        connection, reading = held.connection, self._reading
        if connection.closed or reading is None:
            return
        offset, queue = held.offset, held.queue
        assert type(queue) is Queue
        result = None
        version = self.version
        is_known = route.told.version == version and reading.version == version
        if is_known and not (connection.congested or connection.crowded):
            if queue.max_offset == offset:
                end = nothing(OFFSET_OVERFLOW_ONE, queue, offset)
                self._answer(connection, call.opaque, route, end, offset)
                return
            most, room = limits(call.extFields, self._ordinary)
            matches = route.matches
            result = reading.read(queue, offset, most, room, matches, version)
        if result is None:
            # The owner answers its next pull, or says why not.
            again = nothing(NO_MATCHED_MESSAGE, queue, offset)
            code = ResponseCode.PULL_RETRY_IMMEDIATELY
            told = route.told
            flags = told.topic_flag, told.group_flag
            send_answer(connection, call.opaque, code, again, told.broker_id, *flags)
            self._answers += 1
            return
        self._answer(connection, call.opaque, route, result, offset)

    def _check(self) -> None:
        """Wake the pulls of queues that have grown, whatever their filters."""
        self._check_call = self._reactor.callLater(CHECK_SECONDS, self._check)
        if self.polling is not None:
            self._hub.turns.within(self.polling.check)

    # What was pulled.

    def report(self) -> None:
        """Tell the owner what was pulled."""
        call, self._report_call = self._report_call, None
        if call is not None and call.active():
            call.cancel()
        if not self._touched:
            return
        rows = [route.row for route in self._touched]
        said = Pulled(
            self._seconds,
            self._pulls,
            self._found,
            self._missed,
            self._bytes_in,
            self._answers,
            rows,
        )
        self._relay.tell(link_frame(Kind.PULLED, 0, encode(said)))
        for row in rows:
            row.messages = row.bytes = row.pulls = 0
            row.commit_offset = -1
        self._touched.clear()
        self._pulls = self._found = self._missed = 0
        self._bytes_in = self._answers = 0

    def _forget(self) -> None:
        """Answer nothing before it is allowed anew."""
        self.version = 0
        self._forget_routes()
        self._asked.clear()

    def _forget_routes(self) -> None:
        self.report()
        self._routes.clear()
        if self._reading is not None:
            self._reading.forget()

    def let_go(self) -> None:
        """Keep no file open that the owner has removed; once in a while."""
        if self._reading is not None:
            self._reading.let_go()

    def close(self) -> None:
        """Answer no more."""
        self._forget()
        for call in (self._check_call, self._report_call):
            if call is not None and call.active():
                call.cancel()
        self._check_call = self._report_call = None
        if self.polling is not None:
            self.polling.stop()
        if self._reading is not None:
            self._reading.close()
            self._reading = None
