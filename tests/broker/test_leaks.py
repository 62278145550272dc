"""What is left when clients have come and gone: nothing."""

from __future__ import annotations

import types
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from twisted.internet.defer import Deferred

from rocketbroker.broker.broker import Broker
from rocketbroker.config.remoting import RemotingClientOptions
from rocketbroker.errors import BrokerError
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.remoting.interfaces import Answer, IConnection, Responder
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.frames import encode
from tests.broker.rig import heartbeat, pull_ext, send_ext
from tests.broker.week import DAY, MINUTE, WeekCase

#: So many groups are there for all clients.
GROUPS = 50

#: What clients say of themselves.
BEAT = heartbeat(["T", "%RETRY%GROUP"], group="GROUP", clientID="CLIENT")
TAGS = b'"expressionType":"TAG","subString":"*"'
SQL = b'"expressionType":"SQL92","subString":"a > %d"'

#: Until what clients have left behind is forgotten: dead filters are kept for a day.
LONG = 2 * DAY

#: What messages leave in the store is none of this.
LEFT_OUT = (
    "QueueFiles",
    "_Node",
    "Store",
    "OpenFiles",
    "MemoryDisk",
    "MemoryNetwork",
    "Logger",
)

#: How transactions ended is remembered of the last 100,000.
REMEMBERED = "OpenTransactions._outcomes"

LEAVES = (
    str,
    bytes,
    bytearray,
    int,
    float,
    bool,
    types.ModuleType,
    type,
    type(None),
)


def within(found: Any) -> Iterable[tuple[str, Any]]:
    """What an object holds, each with the name of the attribute."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield "", key
            yield "", value
    elif isinstance(found, list | tuple | set | frozenset | deque):
        for value in found:
            yield "", value
    elif isinstance(found, types.MethodType):
        yield "", found.__self__
    elif isinstance(found, types.FunctionType):
        for cell in found.__closure__ or ():
            yield "", cell.cell_contents
    else:
        for kind in type(found).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if hasattr(found, name):
                    yield name, getattr(found, name)
        yield from list(getattr(found, "__dict__", {}).items())


def sizes(top: object) -> Counter[str]:
    """How much all containers hold that can be reached, by class and attribute.

    Those that have a bound of their own do not count: samples, say.
    """
    found: Counter[str] = Counter()
    seen = {id(top)}
    todo = [(type(top).__name__, top)]
    while todo:
        name, each = todo.pop()
        is_ours = type(each).__module__.startswith("rocketbroker")
        if isinstance(each, dict | list | set | deque):
            bounded = isinstance(each, deque) and each.maxlen is not None
            found[name] += 0 if bounded else len(each)
        for attribute, value in within(each):
            kind = type(value)
            if (
                isinstance(value, LEAVES)
                or id(value) in seen
                or kind.__name__ in LEFT_OUT
            ):
                continue
            seen.add(id(value))
            path = f"{type(each).__name__}.{attribute}" if is_ours else name
            todo.append((path, value))
    return found


def gone(connection: IConnection, request: Command) -> Answer:
    """The client goes instead of answering."""
    connection.close()
    return Deferred()


def silent(connection: IConnection, request: Command) -> Answer:
    """It does not answer."""
    return Deferred()


def twice(connection: IConnection, request: Command) -> Answer:
    """It answers twice."""
    for _ in range(2):
        connection.send(encode(response_to(request, body=b"{}")))
    return None


class LeakCase(WeekCase):
    """A broker with two topics."""

    def begin(self) -> Broker:
        """Start it."""
        broker = self.running(enablePropertyFilter="true", namesrvAddr="")
        for name, perm in (("T", 6), ("Unreadable", 2)):
            ext = {"topic": name, "defaultTopic": "TBW102", "order": "false"}
            more = {"perm": str(perm), "topicFilterType": "SINGLE_TAG"}
            queues = {"readQueueNums": "1", "writeQueueNums": "1", "topicSysFlag": "0"}
            self.assertEqual(self.ask(17, {**ext, **queues, **more}).code, 0)
        return broker


class RelayTests(LeakCase):
    """Clients that are asked, through the broker or by it, and do not do as they
    should: whoever asked has an answer in time, and nothing is left."""

    def late(self, connection: IConnection, request: Command) -> Answer:
        """It answers after a quarter of a minute, which is too late."""
        answer: Deferred[Command | None] = Deferred()
        self.network.callLater(15, answer.callback, response_to(request))
        return answer

    def join(self, name: str, responder: Responder) -> RemotingClient:
        """A client that is a member of G and a producer."""
        table = ResponderTable()
        for code in (307, 309, 221, 326):
            table.register(code, responder)
        client = RemotingClient(self.network, RemotingClientOptions(), table)
        beat = Command(34, {}, heartbeat(clientID=name), version=479)
        heard = client.invoke("127.0.0.1:10911", beat, 3)
        self.network.settle()
        self.assertEqual(self.successResultOf(heard).code, 0)
        return client

    def each(self, broker: Broker) -> None:
        """Each kind of client is asked in each way."""
        for name, responder, info, pushed in (
            ("gone", gone, 1, 1),
            ("silent", silent, ResponseCode.CONSUME_MSG_TIMEOUT, 1),
            ("late", self.late, ResponseCode.CONSUME_MSG_TIMEOUT, 1),
            ("twice", twice, 0, 0),
        ):
            who = {"consumerGroup": "G", "clientId": name}
            own = f"REPLY_TO_CLIENT\x01{name}\x02CORRELATION_ID\x01c\x02"
            for code, ext, body, expected in (
                (307, who, b"", info),
                (309, {**who, "msgId": self.message, "topic": "T"}, b"", info),
                (223, {"group": "G", "topic": "T", "clientAddr": name}, b"", 0),
                (325, send_ext("T", properties=own), b"pong", pushed),
            ):
                client = self.join(name, responder)
                asked = Command(code, ext, body)
                answer = self.client.invoke("127.0.0.1:10911", asked, 12)
                self.pass_by(20)
                found = self.successResultOf(answer)
                self.assertEqual(found.code, expected, f"{name} {code} {found.remark}")
                client.stop()
                self.pass_by(1)

    def test_misbehaving(self) -> None:
        """The answers are as they should be, and the second time leaves no more than
        the first."""
        broker = self.begin()
        self.assertEqual(self.ask(310, send_ext("T", d="1"), b"ping").code, 0)
        (message,) = self.messages()
        self.message = message.offset_id
        self.each(broker)
        self.pass_by(LONG, step=4 * MINUTE)
        before = sizes(broker)
        self.each(broker)
        self.pass_by(LONG, step=4 * MINUTE)
        self.assertEqual(dict(sizes(broker) - before), {})
        self.stop(broker)


class LeakTests(LeakCase):
    """A broker and many clients that do all that clients do."""

    def setUp(self) -> None:
        """Nothing was refused yet."""
        super().setUp()
        self.refused = 0

    def client_comes(self, broker: Broker, number: int) -> RecordedConnection:
        """One client: consumer with a filter, producer, locks, a pull that waits; some
        broadcast, and some begin a transaction."""
        group = f"G{number % GROUPS}"
        client_id = f"10.0.0.9@{number}"
        connection = RecordedConnection(port=number % 60000)
        value = BEAT.replace(b"GROUP", group.encode())
        value = value.replace(b"CLIENT", client_id.encode())
        if number % 2:
            value = value.replace(TAGS, SQL % number, 1)
        if number % GROUPS < 5:
            value = value.replace(b"CLUSTERING", b"BROADCASTING")
        queues = [{"topic": "T", "brokerName": "b", "queueId": 0}]
        wanted = {"consumerGroup": group, "clientId": client_id, "mqSet": queues}
        pull = pull_ext(0, consumerGroup=group, sysFlag="6")
        asked: list[tuple[int, dict[str, str], bytes]] = [
            (34, {}, value),
            (11, pull, b""),
            (11, {**pull, "topic": "Unreadable"}, b""),
        ]
        if number % 5 == 0:
            question = {**wanted, "topic": "T", "strategyName": "AVG"}
            asked += [(41, {}, dumps(wanted)), (400, {}, dumps(question))]
        if number % 200 == 0:
            half = f"TRAN_MSG\x01true\x02PGROUP\x01P\x02UNIQ_KEY\x01{number}\x02"
            asked.append((310, send_ext("T", d="1", f="4", properties=half), b"half"))
        for code, ext, body in asked:
            self.tell(broker, connection, code, ext, body)
        return connection

    def client_goes(
        self, broker: Broker, number: int, connection: RecordedConnection
    ) -> None:
        """It says so, or not, or falls silent and is found out."""
        if number % 3 == 0:
            ext = {
                "clientID": f"10.0.0.9@{number}",
                "consumerGroup": f"G{number % GROUPS}",
                "producerGroup": "P",
            }
            self.tell(broker, connection, 35, ext)
        if number % 3 != 2:
            connection.close()

    def tell(
        self,
        broker: Broker,
        connection: RecordedConnection,
        code: int,
        ext: dict[str, str],
        body: bytes = b"",
    ) -> None:
        """One request; what is answered is not looked at."""
        try:
            broker.main.responders[code](connection, Command(code, ext, body))
            broker.appends.batcher.flush()
        except BrokerError:
            self.refused += 1

    def many(self, broker: Broker, first: int, count: int) -> None:
        """So many clients, sixty of them at a time."""
        there: deque[tuple[int, RecordedConnection]] = deque()
        for number in range(first, first + count):
            there.append((number, self.client_comes(broker, number)))
            if len(there) > 60:
                self.client_goes(broker, *there.popleft())
            if number % 50 == 0:
                self.pass_by(10, step=10)
        for number, connection in there:
            self.client_goes(broker, number, connection)

    def test_tenThousand(self) -> None:
        """After ten thousand clients the broker holds what it held after a hundred."""
        broker = self.begin()
        self.many(broker, 0, 100)
        self.pass_by(LONG, step=4 * MINUTE)
        before = sizes(broker)
        self.many(broker, 100, 10_000)
        self.assertGreater(broker.pull.long_polling.held, 0)
        self.assertGreater(broker.clients.locks.count, 0)
        self.assertNotEqual(broker.diagnostics.diagnosis.findings(), [])
        self.pass_by(LONG, step=4 * MINUTE)
        after = sizes(broker)
        self.assertEqual(after.pop(REMEMBERED) - before.pop(REMEMBERED), 50)
        self.assertEqual(dict(after - before), {})
        self.assertEqual(broker.pull.long_polling.held, 0)
        self.assertEqual(broker.clients.consumers.groups(), [])
        self.assertEqual(broker.clients.producers.names(), [])
        self.assertEqual(broker.clients.locks.count, 0)
        self.assertEqual(broker.diagnostics.diagnosis.findings(), [])
        self.stop(broker)
