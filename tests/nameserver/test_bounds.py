"""What the dearest request of each code may take in one turn of the reactor."""

from __future__ import annotations

import json
from typing import Final

from twisted.internet.defer import Deferred

from rocketbroker.errors import SystemFailure
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.nameserver.brokers import MAX_ROUTE_BYTES, MAX_VERSION_BYTES
from rocketbroker.nameserver.keyvalues import FEW, MAX_ENTRIES, ORDER_TOPIC_CONFIG
from rocketbroker.nameserver.routes import FEW_TOPICS
from rocketbroker.remoting.settings_change import MAX_BODY, MAX_LINES
from rocketbroker.routing.table import STEP_TOPICS
from rocketbroker.wire.bodies.registration import STEP_BYTES
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import VERSION, Command
from rocketbroker.wire.json_writer import STEP_ITEMS
from tests.nameserver.case import (
    KV_PATH,
    NameServerTestCase,
    broker_header,
    registration_body,
)

#: More topics, brokers and key-values than anything is done for at once.
TOPICS: Final = 3000
BROKERS: Final = FEW_TOPICS + 1
KEYS: Final = FEW + 2

_BROKER: Final = broker_header("b0")
_KEY: Final = {"namespace": ORDER_TOPIC_CONFIG, "key": "K7", "value": "new"}
_NAMES: Final = tuple(f"T{number}" for number in range(TOPICS))
_BODY: Final = registration_body(_NAMES, counter=2).encode()

#: Done in slices: header, body, and how many steps there are at least. A namespace is
#: asked for before a registration, whose answer has it, too.
SLICED: Final[dict[int, tuple[dict[str, str], bytes, int]]] = {
    100: (_KEY, b"", KEYS // STEP_ITEMS),
    102: (_KEY, b"", KEYS // STEP_ITEMS),
    219: (_KEY, b"", KEYS // STEP_ITEMS),
    103: (_BROKER, _BODY, len(_BODY) // (2 * STEP_BYTES) + TOPICS // STEP_TOPICS),
    105: ({"topic": "T0"}, b"", 2 * BROKERS // STEP_ITEMS),
    106: ({}, b"", BROKERS // STEP_ITEMS),
    205: ({"brokerName": "b0"}, b"", TOPICS // STEP_TOPICS),
    206: ({}, b"", TOPICS // STEP_ITEMS),
    224: ({"cluster": "c1"}, b"", 2 * TOPICS // STEP_TOPICS),
    304: ({}, b"", BROKERS // STEP_ITEMS),
    311: ({}, b"", TOPICS // STEP_TOPICS),
    312: ({}, b"", TOPICS // STEP_TOPICS),
    313: ({}, b"", TOPICS // STEP_TOPICS),
    327: ({"brokerName": "b0"}, b"", TOPICS // STEP_TOPICS),
}

#: Refused in words: bodies that are too long, and what the answer names.
REFUSED: Final[dict[int, tuple[tuple[bytes, int], ...]]] = {
    217: ((b" " * (MAX_ROUTE_BYTES + 1), MAX_ROUTE_BYTES),),
    318: ((b"a" * (MAX_BODY + 1), MAX_BODY), (b"\n" * (MAX_LINES + 1), MAX_LINES)),
    322: ((b" " * (MAX_VERSION_BYTES + 1), MAX_VERSION_BYTES),),
}

#: Bounded by what they look at, however large the tables are, and why.
SMALL: Final[dict[int, str]] = {
    101: "one value",
    104: "noted only; what comes of it is done in slices",
    216: "one topic, at as many brokers as there may be",
    319: "as many settings as there are",
    901: "one broker name, with as many brokers as it may have",
    904: "one broker",
}


class BoundTests(NameServerTestCase):
    """A name server with large tables."""

    def setUp(self) -> None:
        """Fill them."""
        super().setUp()
        table = {f"K{number}": "v" for number in range(KEYS)}
        content = json.dumps({"configTable": {ORDER_TOPIC_CONFIG: table}}).encode()
        JsonFile(self.files, KV_PATH).save(content)
        self.begin()
        for number in range(BROKERS):
            self.ask_late(103, broker_header(f"b{number}"), b"")
            self.clock.advance(0)
            header = {**broker_header(f"b{number}"), "brokerId": "0"}
            body = registration_body(("T0", "U")).encode()
            self.ask_late(103, header, body)
            self.clock.advance(0)
        self.ask_late(103, _BROKER, _BODY)
        self.clock.advance(0)
        self.assertEqual(len(self.nameserver.routes.topics), TOPICS + 1)

    def ask_late(
        self, code: int, header: dict[str, str], body: bytes
    ) -> Command | Deferred[Command | None] | None:
        """What a responder gives, which may be the answer or come later."""
        request = Command(code, header, body, version=VERSION)
        return self.nameserver.responders.responders[code](self.connection, request)

    def test_everyCodeHasABound(self) -> None:
        """Each request of the name server is in one of the tables above."""
        codes = sorted([*SLICED, *REFUSED, *SMALL])
        self.assertEqual(codes, sorted(self.nameserver.responders.responders))

    def test_slicedRequestsLeaveTheTurn(self) -> None:
        """They are answered after so many steps, and not in the turn of the request."""
        for code, (header, body, least) in SLICED.items():
            before = self.nameserver.slices.steps
            answer = self.ask_late(code, header, body)
            assert isinstance(answer, Deferred), code
            self.assertNoResult(answer)
            self.assertEqual(self.nameserver.slices.steps, before, code)
            self.clock.advance(0)
            command = self.successResultOf(answer)
            assert command is not None
            self.assertEqual(command.code, 0, (code, command.remark))
            self.assertGreaterEqual(self.nameserver.slices.steps - before, least, code)

    def test_longBodiesAreRefused(self) -> None:
        """What would take long to read is refused in words."""
        for code, bodies in REFUSED.items():
            for body, most in bodies:
                error = self.assertRaises(
                    SystemFailure, self.ask_late, code, {**_BROKER, "topic": "T"}, body
                )
                self.assertIn(f" {most}", str(error))

    def test_smallRequestsAreAnsweredAtOnce(self) -> None:
        """What looks at little needs no slices, however large the tables are."""
        for code in SMALL:
            header = {**_KEY, **_BROKER, "topic": "T0", "clusterName": "c1"}
            self.assertIsInstance(self.ask_late(code, header, b""), Command, code)

    def check_removal(self) -> None:
        """A broker is gone after so many steps."""
        before = self.nameserver.slices.steps
        self.clock.advance(0)
        self.assertEqual(set(self.nameserver.routes.topics), {"T0", "U"})
        self.assertGreater(self.nameserver.slices.steps - before, TOPICS // STEP_TOPICS)

    def test_removalIsSliced(self) -> None:
        """A broker that unregisters takes its topics with it a few at a time."""
        self.ask_late(104, _BROKER, b"")
        self.check_removal()

    def test_lossIsSliced(self) -> None:
        """So does one whose connection closes."""
        self.connection.close()
        self.check_removal()

    def test_stopSavesWhatIsBeingWritten(self) -> None:
        """A change whose file is being written in slices is on the disk after a stop,
        and answered."""
        answer = self.ask_late(100, _KEY, b"")
        assert isinstance(answer, Deferred)
        self.assertNoResult(answer)
        self.successResultOf(self.nameserver.stop())
        self.successResultOf(answer)
        self.assertIn(b'"K7":"new"', self.files.read(KV_PATH))

    def test_keysAreBounded(self) -> None:
        """There are so many keys at most; those that are there may change."""
        table = {f"K{number}": "v" for number in range(MAX_ENTRIES - 1)}
        content = json.dumps({"configTable": {ORDER_TOPIC_CONFIG: table}}).encode()
        JsonFile(self.files, KV_PATH).save(content)
        self.begin()
        other = {**_KEY, "key": "other"}
        code, remark = RequestCode.PUT_KV_CONFIG, f"the most is {MAX_ENTRIES}."
        error = self.assertRaises(SystemFailure, self.ask_late, code, other, b"")
        self.assertIn(remark, str(error))
        answer = self.ask_late(code, _KEY, b"")
        assert isinstance(answer, Deferred)
        self.clock.advance(0)
        self.successResultOf(answer)
