"""What stands before the responders of a broker, and fails where a rule says so."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.testing.fault_rules import BUSY
from rocketbroker.app.testing.faults import AGAIN_SECONDS
from rocketbroker.errors import BrokerError, InvalidParameter
from rocketbroker.records.record import body_crc, decode_all
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import Command
from tests.broker.rig import Rig, answered, heartbeat, pull_ext, send_ext


class FaultCase(SynchronousTestCase):
    """A broker in testing mode, with topic T."""

    def setUp(self) -> None:
        """Nothing fails yet."""
        self.rig = Rig({"autoCreateTopicEnable": "false"}, testing=True)
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.rig.connection.frames.clear()

    def fault(self, action: str, **rule: object) -> int:
        """Add a rule."""
        found = self.control({"add": {"action": action, **rule}})["id"]
        assert isinstance(found, int)
        return found

    def control(self, body: object) -> Any:
        """Request 31010, and its answer."""
        return json.loads(self.rig.ask(31010, {}, json.dumps(body).encode()).body)

    def hits(self) -> list[int]:
        """How many requests each rule has met."""
        return [rule["hits"] for rule in self.control({"list": {}})["rules"]]

    def send(self, topic: str = "T", **more: str) -> Command:
        """Send a message, and have the answer."""
        return self.rig.ask(310, send_ext(topic, **more), b"body")

    def pull(self, offset: int = 0) -> Any:
        """Pull from the first queue; what the responder gives."""
        self.rig.scheduler.dispatch()
        return self.rig.begin(11, pull_ext(offset, sysFlag="4"))

    def bodies(self) -> list[bytes]:
        """What is stored."""
        return [message.body for message in self.rig.records()]


class RuleTests(FaultCase):
    """Request 31010."""

    def test_rulesAreListedAndRemoved(self) -> None:
        """By number, by owner, or all."""
        numbers = [self.fault("drop", owner=owner) for owner in ("a", "a", "b", None)]
        self.assertEqual(numbers, [1, 2, 3, 4])
        found = self.control({"list": {"owner": "a"}})["rules"]
        self.assertEqual([rule["id"] for rule in found], [1, 2])
        self.assertEqual(found[0]["request"], None)
        self.assertEqual(self.control({"clear": {"id": 1}}), {"cleared": 1})
        self.assertEqual(self.control({"clear": {"owner": "a"}}), {"cleared": 1})
        self.assertEqual(self.control({"clear": {"owner": "a"}}), {"cleared": 0})
        self.assertEqual(self.control({"clear": {}}), {"cleared": 2})
        self.assertEqual(self.control({}), {"rules": []})
        self.assertEqual(self.fault("drop"), 5)

    def test_otherBodiesAreRefused(self) -> None:
        """With what they can be."""
        for body in (b"{", b"[]", b'{"add":{},"list":{}}', b'{"clear":{"topic":"T"}}'):
            self.assertRaises(InvalidParameter, self.rig.ask, 31010, {}, body)

    def test_firstRuleThatFitsCounts(self) -> None:
        """Others are not hit; one that is over fits nothing."""
        self.fault("code", code=4, topic="Other")
        self.fault("code", code=14, times=1)
        self.fault("busy")
        codes = [self.send().code for _ in range(3)]
        self.assertEqual(codes, [14, 2, 2])
        self.assertEqual(self.hits(), [0, 1, 2])

    def test_withoutTestingModeTheyAreUnknown(self) -> None:
        """The broker has no responder for them, and its refusal is that of others."""
        table = ResponderTable()
        for code in (31010, 31011):
            self.assertNotIn(code, self.rig.broker.main.responders)
            self.assertNotIn(code, self.rig.broker.vip.responders)
            refusal = table.refusal(code)
            self.assertEqual(refusal.code, table.refusal(9999).code)
            self.assertIn(f"request type {code}", refusal.remark)


class PlaceTests(FaultCase):
    """Who is meant."""

    def test_topicAndGroupOfRequests(self) -> None:
        """In the short form of sends, and in the long form of others."""
        self.fault("busy", topic="T", group="PG")
        self.fault("busy", group="G", request="pull")
        self.assertEqual(self.send().code, 2)
        self.assertEqual(self.send(a="Other").code, 0)
        long = {"producerGroup": "PG", "topic": "T", "bornTimestamp": "1"}
        self.assertEqual(self.rig.ask(10, long, b"x").code, 2)
        self.assertEqual(answered(self.pull()).code, 2)
        self.assertEqual(self.hits(), [2, 1])

    def test_clientByItsHeartbeats(self) -> None:
        """On its connection, until that is closed; or by its address."""
        connection = self.rig.connection
        self.rig.ask(34, {}, heartbeat(["T"], clientID="C1"))
        number = self.fault("busy", client="C1")
        self.assertEqual(self.send().code, 2)
        self.control({"clear": {"id": number}})
        self.fault("busy", client=connection.peer)
        self.assertEqual(self.send().code, 2)

    def test_heartbeatsByTheirGroups(self) -> None:
        """Each of them."""
        self.fault("drop", request="heartbeat", group="G")
        body = heartbeat(["T"], group="G")
        self.assertIsNone(self.rig.begin(34, {}, body))
        self.assertIsNone(self.rig.consumers.group("G"))


class ActionTests(FaultCase):
    """What becomes of a request."""

    def test_codeIsAnsweredWithItsRemark(self) -> None:
        """The request is not done."""
        self.fault("busy", times=1)
        self.fault("code", code=17, times=1)
        answer = self.send()
        self.assertEqual((answer.code, answer.remark), (2, BUSY))
        answer = self.send()
        with self.assertRaises(BrokerError) as caught:
            self.send("None")
        refusal = caught.exception
        self.assertEqual(answer.code, refusal.code)
        self.assertEqual(answer.remark, refusal.remark.replace("[None]", "[T]"))
        self.assertEqual(self.bodies(), [])

    def test_storedMessageIsAnsweredWithItsPlace(self) -> None:
        """And the code of a flush or a slave that was not in time."""
        for action, code in (
            ("flush_timeout", 10),
            ("slave_missing", 11),
            ("slave_timeout", 12),
        ):
            self.fault(action, times=1)
            answer = self.send()
            assert answer.ext is not None
            self.assertEqual((answer.code, answer.remark), (code, None))
            self.assertIn("queueOffset", answer.ext)
            self.assertIn("msgId", answer.ext)
        self.assertEqual(self.bodies(), [b"body"] * 3)

    def test_refusedMessageIsAnsweredWithItsRefusal(self) -> None:
        """It is not stored, so nothing is late."""
        self.fault("flush_timeout")
        with self.assertRaises(BrokerError) as caught:
            self.send("None")
        self.assertEqual(caught.exception.code, 17)

    def test_delayedRequestIsDoneLater(self) -> None:
        """By the machine's time; any other action waits, too."""
        self.fault("delay", ms=500, times=1)
        answer = self.rig.begin(310, send_ext(), b"body")
        self.rig.testing.time.move(10_000)
        self.rig.clock.advance(0.4)
        self.rig.batcher.flush()
        self.assertEqual(self.bodies(), [])
        self.rig.clock.advance(0.1)
        self.rig.batcher.flush()
        self.assertEqual(answered(answer).code, 0)
        self.assertEqual(self.bodies(), [b"body"])
        self.fault("busy", ms=500)
        answer = self.rig.begin(310, send_ext(), b"body")
        assert isinstance(answer, Deferred)
        self.assertNoResult(answer)
        self.rig.clock.advance(0.5)
        self.assertEqual(answered(answer).code, 2)

    def test_droppedRequestIsNeitherDoneNorAnswered(self) -> None:
        """Its connection stays, unless it is cut."""
        for action, closed in (("drop", False), ("cut", True)):
            self.fault(action, times=1)
            self.assertIsNone(self.rig.begin(310, send_ext(), b"body"))
            self.assertEqual(self.rig.connection.closed, closed)
        self.assertEqual(self.bodies(), [])

    def test_sentTwiceIsStoredTwice(self) -> None:
        """With one id, at two places; the answer names the first."""
        self.fault("duplicate", times=1)
        answer = self.send()
        assert answer.ext is not None
        self.assertEqual(answer.ext["queueOffset"], "0")
        messages = self.rig.records()
        self.assertEqual([message.queue_offset for message in messages], [0, 1])
        self.assertEqual(messages[0].unique_key, messages[1].unique_key)

    def test_pulledTwiceComesAgain(self) -> None:
        """The next pull is sent back to where this one began, after a while; from
        there all goes its way."""
        self.send()
        self.fault("duplicate", request="pull")
        first = answered(self.pull())
        assert first.ext is not None
        self.assertEqual(first.ext["nextBeginOffset"], "1")
        back = self.pull(1)
        assert isinstance(back, Deferred)
        self.assertNoResult(back)
        self.rig.clock.advance(AGAIN_SECONDS)
        moved = answered(back)
        assert moved.ext is not None
        self.assertEqual((moved.code, moved.body), (21, b""))
        self.assertEqual(moved.ext, {**first.ext, "nextBeginOffset": "0"})
        second = answered(self.pull())
        self.assertEqual((second.body, second.ext), (first.body, first.ext))
        self.assertEqual(answered(self.pull(1)).code, 19)
        self.assertEqual(self.hits(), [1])

    def test_heldPullIsMetWhenItIsAnswered(self) -> None:
        """By the rules of then; pulls that find nothing are no hits."""
        answered(self.pull())
        held = self.rig.begin(11, pull_ext(0, sysFlag="6"))
        self.fault("duplicate", request="pull")
        self.fault("corrupt", ms=500)
        self.assertEqual(answered(self.pull()).code, 19)
        self.assertEqual(self.hits(), [0, 0])
        self.send()
        self.rig.scheduler.dispatch()
        self.assertEqual(answered(held).code, 0)
        back = self.pull(1)
        self.rig.clock.advance(AGAIN_SECONDS)
        self.assertEqual(answered(back).code, 21)
        again = self.pull()
        assert isinstance(again, Deferred)
        self.assertNoResult(again)
        self.rig.clock.advance(0.5)
        (message,) = decode_all(answered(again).body)
        self.assertEqual(message.body, b"\x9dody")
        self.assertEqual(self.hits(), [1, 1])

    def test_corruptBodiesDoNotFitTheirChecksums(self) -> None:
        """All else of the messages is right; what is stored is, too."""
        self.send()
        self.rig.ask(310, send_ext(), b"other")
        self.fault("corrupt", times=1)
        found = list(decode_all(answered(self.pull()).body))
        self.assertEqual([message.body for message in found], [b"\x9dody", b"\x90ther"])
        self.assertEqual([message.topic for message in found], ["T", "T"])
        for message in found:
            self.assertNotEqual(body_crc(message.body), message.body_crc)
        self.assertEqual(self.bodies(), [b"body", b"other"])
