"""What bounds the work that one frame asks for: of each request code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_bodies import (
    ENTRY_BYTES,
    ENTRY_OBJECTS,
    ENTRY_VALUES,
    GROUP_OBJECTS,
    MAX_BODY,
    MAX_VALUES,
    STEP_ENTRIES,
)
from rocketbroker.broker.long_requests import MAX_MEMBERS
from rocketbroker.errors import InvalidParameter, SystemBusy, SystemFailure
from rocketbroker.remoting.cooperative_tasks import FEW_STEPS
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.mappings import LogicQueueMappingItem
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import (
    MAX_LENIENT_BODY,
    MAX_LENIENT_TURN_BODY,
    dumps,
    loads,
)
from tests.broker.rig import Rig, answered, logged

#: rocketbrokerMaxRequestEntries of these tests: more than what is done at once.
MOST: Final = FEW_STEPS * STEP_ENTRIES + 100

ENTRIES: Final = (
    "rocketbrokerMaxRequestEntries: a long body is read in slices, as entries are"
)
BODY: Final = "a body of one thing, which is short"
HEADER: Final = "the header, of which no more than 256 KiB is read; no body is"
MESSAGE: Final = "maxMessageSize, and properties of 32 KiB"
BATCH: Final = "the messages of one batch, which is cut in slices"
READ: Final = "the messages and bytes of one answer"
SLICES: Final = "nothing: it is looked up in slices, and written in slices or threads"
TEXTS: Final = "a frame: texts that are kept are put together"
THREAD: Final = "nothing: it is done in a thread"
HEARTBEAT: Final = "the groups and subscriptions of one client"
REPLICAS: Final = "another broker's few fields"
SETTINGS: Final = "the bytes of a change of settings"

#: By request code: what bounds the work of its frame. A new code gets its own line.
BOUNDS: Final = {
    10: MESSAGE,
    11: READ,
    12: THREAD,
    14: HEADER,
    15: HEADER,
    17: HEADER,
    18: ENTRIES,
    21: TEXTS,
    25: SETTINGS,
    26: HEADER,
    28: HEADER,
    29: THREAD,
    30: HEADER,
    31: HEADER,
    32: THREAD,
    33: THREAD,
    34: HEARTBEAT,
    35: HEARTBEAT,
    36: HEADER,
    37: HEADER,
    38: TEXTS,
    41: ENTRIES,
    42: ENTRIES,
    43: SLICES,
    45: HEADER,
    46: HEARTBEAT,
    60: HEADER,
    61: TEXTS,
    200: BODY,
    201: TEXTS,
    202: SLICES,
    203: SLICES,
    204: SLICES,
    207: HEADER,
    208: SLICES,
    215: SLICES,
    222: SLICES,
    223: SLICES,
    225: ENTRIES,
    300: HEADER,
    303: SLICES,
    305: HEADER,
    306: THREAD,
    307: HEADER,
    308: SLICES,
    309: THREAD,
    310: MESSAGE,
    314: SLICES,
    315: HEADER,
    316: SLICES,
    317: SLICES,
    320: BATCH,
    321: READ,
    323: HEADER,
    324: MESSAGE,
    325: MESSAGE,
    328: SLICES,
    329: THREAD,
    343: HEADER,
    345: HEADER,
    351: TEXTS,
    352: HEADER,
    353: HEADER,
    354: HEADER,
    355: HEADER,
    361: READ,
    370: HEADER,
    400: BODY,
    401: BODY,
    402: TEXTS,
    513: ENTRIES,
    905: REPLICAS,
    906: REPLICAS,
    907: REPLICAS,
    908: REPLICAS,
    2001: SETTINGS,
    2002: SETTINGS,
    2003: HEADER,
    2004: HEADER,
    31001: HEADER,
    31002: HEADER,
    200050: SLICES,
    200051: HEADER,
    200052: SLICES,
    200053: HEADER,
    200054: SLICES,
    200055: HEADER,
    200056: HEADER,
    200151: ENTRIES,
}

MAPPED: Final = {
    "topic": "S",
    "defaultTopic": "TBW102",
    "readQueueNums": "4",
    "writeQueueNums": "4",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "false",
    "force": "true",
}


def mapped(count: int) -> dict[str, object]:
    """A mapping of so many queues."""
    rows = {
        str(number): [{"gen": 0, "queueId": number, "bname": "broker-a"}]
        for number in range(count)
    }
    return {"topic": "S", "bname": "broker-a", "epoch": 1, "hostedQueues": rows}


def locked(count: int) -> dict[str, object]:
    """So many queues that a client locks."""
    queues = [
        {"brokerName": "broker-a", "queueId": number, "topic": "T"}
        for number in range(count)
    ]
    return {"clientId": "c", "consumerGroup": "G", "mqSet": queues}


def acks(count: int) -> dict[str, object]:
    """So many acknowledgements, of one message each."""
    ack = {"c": "G", "t": "T", "r": "0", "so": 0, "rq": 0, "q": 0, "b": "AQ=="}
    return {
        "brokerName": "broker-a",
        "acks": [{**ack, "pt": number, "it": 60000} for number in range(count)],
    }


#: By code whose entries are bounded: the body of so many entries.
LISTS: Final[dict[int, Callable[[int], dict[str, object]]]] = {
    18: lambda count: {
        "topicConfigList": [{"topicName": f"T{number}"} for number in range(count)]
    },
    41: locked,
    42: locked,
    225: lambda count: {
        "groupConfigList": [{"groupName": f"G{number}"} for number in range(count)]
    },
    513: mapped,
    200151: acks,
}


class FrameCase(SynchronousTestCase):
    """A broker that takes some entries."""

    def setUp(self) -> None:
        """A broker with topic T."""
        self.rig = Rig({"rocketbrokerMaxRequestEntries": str(MOST)})
        self.addCleanup(self.rig.close)
        self.rig.topic("T", 1)
        self.rig.append()
        self.rig.scheduler.dispatch()

    def begin(self, code: int, value: object) -> Any:
        """Ask; what the responder gave when its turn was over."""
        answer = self.rig.begin(code, MAPPED, dumps(value))
        self.rig.batcher.flush()
        return answer

    def ask(self, code: int, value: object) -> Command:
        """Ask, and have the answer."""
        answer = self.begin(code, value)
        self.rig.clock.advance(0)
        return answered(answer)

    def refusal(self, code: int, value: object) -> str:
        """Ask; the words in which that is refused."""
        with self.assertRaises(SystemFailure) as caught:
            self.ask(code, value)
        return str(caught.exception.remark)


class BoundTests(FrameCase):
    """The table, and its lists."""

    def test_everyCodeHasABound(self) -> None:
        """A request code without a bound is not served."""
        self.assertEqual(sorted(self.rig.table.responders), sorted(BOUNDS))
        listed = [code for code, bound in BOUNDS.items() if bound is ENTRIES]
        self.assertEqual(listed, sorted(LISTS))

    def test_asManyEntriesAsAllowedInSlices(self) -> None:
        """Of each kind of list as many entries are taken as may be, in slices."""
        for code, value in LISTS.items():
            before = self.rig.broker.slices.steps
            self.assertEqual(self.ask(code, value(MOST)).code, 0, code)
            steps = self.rig.broker.slices.steps - before
            self.assertGreaterEqual(steps, 100 // STEP_ENTRIES, code)

    def test_fewEntriesInTheirTurn(self) -> None:
        """What is quickly done is answered in its own turn, without slices."""
        for code, value in LISTS.items():
            self.assertEqual(answered(self.begin(code, value(3))).code, 0, code)
        self.assertEqual(self.rig.broker.slices.steps, 0)

    def test_oneEntryMoreIsRefusedInWords(self) -> None:
        """One more is refused with the name of the setting, and nothing is done."""
        for code, value in LISTS.items():
            words = self.refusal(code, value(MOST + 1))
            self.assertIn("rocketbrokerMaxRequestEntries", words, code)
            self.assertIn(f"at most {MOST}", words, code)
        self.assertIsNone(self.rig.topics.config("T0"))
        self.assertIsNone(self.rig.groups.config("G0"))
        self.assertEqual(self.rig.broker.metadata.mappings.details, {})
        self.assertEqual(self.rig.broker.clients.locks.count, 0)

    def test_settingCounts(self) -> None:
        """The limit changes while the broker runs."""
        self.rig.change(rocketbrokerMaxRequestEntries=2)
        for code, value in LISTS.items():
            self.assertIn("at most 2", self.refusal(code, value(3)), code)
            self.assertEqual(self.ask(code, value(2)).code, 0, code)

    def test_longBodiesAreNotRead(self) -> None:
        """A body of too many bytes, objects or values is refused before it is read."""
        most = max(MAX_BODY, ENTRY_BYTES * MOST)
        for code in LISTS:
            each = GROUP_OBJECTS if code == 225 else ENTRY_OBJECTS
            objects = each * (most // ENTRY_BYTES) + 1
            for body, word in (
                (b" " * (most + 1), "bytes"),
                (b"[" * objects, "objects"),
                (b"," * (ENTRY_VALUES * (most // ENTRY_BYTES) + 1), "values"),
            ):
                with self.assertRaises(SystemFailure) as caught:
                    answered(self.rig.begin(code, MAPPED, body))
                self.assertIn(word, caught.exception.remark)

    def test_longBodiesOfOneThing(self) -> None:
        """So is the body of what is no list."""
        for code in (code for code, bound in BOUNDS.items() if bound is BODY):
            with self.assertRaises(SystemFailure) as caught:
                answered(self.rig.begin(code, {}, b" " * (MAX_BODY + 1)))
            self.assertIn(f"at most {MAX_BODY}", caught.exception.remark)

    def test_oneLargeEntry(self) -> None:
        """An entry of very many values is refused."""
        attributes = {f"+a{number}": "b" for number in range(MAX_VALUES)}
        for code, value in (
            (18, {"topicConfigList": [{"topicName": "A", "attributes": attributes}]}),
            (200, {"groupName": "A", "subscriptionDataSet": [0] * MAX_VALUES}),
            (513, {**mapped(0), "hostedQueues": {"0": [[0] * MAX_VALUES]}}),
        ):
            self.assertIn(f"more than {MAX_VALUES} values", self.refusal(code, value))


class LongBodyTests(FrameCase):
    """Lists whose bodies take too long to be read in one turn."""

    def test_longBodyIsReadInSlices(self) -> None:
        """A long body is read in slices, strict or not, and counted meanwhile."""
        slices, held = self.rig.broker.slices, self.rig.broker.context.long_requests
        unknown = b',"x":"%s"}' % (b"y" * MAX_LENIENT_TURN_BODY)
        for code, value in LISTS.items():
            for end in (unknown, unknown.replace(b'"', b"'")):
                body = dumps(value(3))[:-1] + end
                before = slices.steps
                asked = self.rig.begin(code, MAPPED, body)
                assert isinstance(asked, Deferred)
                self.assertNoResult(asked)
                self.assertEqual(held.held, len(body), code)
                self.rig.clock.advance(0)
                self.assertEqual(answered(asked).code, 0, code)
                self.assertGreater(slices.steps, before, code)
                self.assertEqual(held.held, 0, code)

    def test_longBodyThatIsWrong(self) -> None:
        """A long body that cannot be read is refused like a short one."""
        blanks = b" " * MAX_LENIENT_TURN_BODY
        for code in LISTS:
            for body in (b"{", b"7"):
                words = []
                for text in (body, blanks + body):
                    asked = self.rig.begin(code, MAPPED, text)
                    self.rig.clock.advance(0)
                    with self.assertRaises(SystemFailure) as caught:
                        answered(asked)
                    words.append(str(caught.exception.remark).split(":")[0])
                self.assertEqual(words[0], words[1], code)

    def test_dialectIsAsLongAsStrictJson(self) -> None:
        """The keys of a mapping are numbers without quotes, in a body of any length."""
        self.rig.change(rocketbrokerMaxRequestEntries=10_000)
        item = b'[{"gen":0,"queueId":0,"bname":"broker-a"}]'
        row = b"%d:" + b" " * 60_000 + item
        rows = b",".join(row % number for number in range(20))
        body = b'{"topic":"S","bname":"broker-a","epoch":1,"hostedQueues":{%s}}' % rows
        self.assertGreater(len(body), MAX_LENIENT_BODY)
        asked = self.rig.begin(513, MAPPED, body)
        self.rig.clock.advance(0)
        self.assertEqual(answered(asked).code, 0)
        (detail,) = self.rig.broker.metadata.mappings.details.values()
        self.assertEqual(len(detail.hosted_queues), 20)

    def test_entriesWithAllMembers(self) -> None:
        """As many entries as are allowed may have all members that Java writes."""
        attributes = {
            "+queue.type": "SimpleCQ",
            "+cleanup.policy": "DELETE",
            "+message.type": "NORMAL",
            "+reserve.time": "72",
        }
        topics = [
            TopicConfig(topic_name=f"topic-{number}", attributes=attributes).to_json()
            for number in range(MOST)
        ]
        subscribed = {"topic": "T", "type": "TAG", "expression": "*", "version": 1}
        groups = [
            SubscriptionGroupConfig(
                group_name=f"group-{number}", subscription_data_set=[subscribed]
            ).to_json()
            for number in range(MOST)
        ]
        item = LogicQueueMappingItem(gen=0, queue_id=0, bname="broker-a").to_json()
        rows = {number: [item] for number in range(MOST)}
        for code, value in (
            (18, {"topicConfigList": topics}),
            (225, {"groupConfigList": groups}),
            (513, {**mapped(0), "hostedQueues": rows}),
        ):
            # So long that it is read in slices.
            body = dumps(value).rjust(MAX_LENIENT_TURN_BODY + 1)
            asked = self.rig.begin(code, MAPPED, body)
            self.rig.clock.advance(0)
            self.assertEqual(answered(asked).code, 0, code)

    def test_manyMembers(self) -> None:
        """A body has a few members beside its list: look-ups see all at once."""
        others = {f"a{number}": 0 for number in range(MAX_MEMBERS)}
        for code, value in LISTS.items():
            words = self.refusal(code, {**value(1), **others})
            self.assertIn(f"more than {MAX_MEMBERS} members", words, code)


class TopicListTests(FrameCase):
    """Request 18, whose topics are checked in slices."""

    def topics(self, *others: dict[str, object]) -> dict[str, object]:
        """A list that takes slices, and others behind it."""
        value = LISTS[18](MOST - len(others))
        found = value["topicConfigList"]
        assert isinstance(found, list)
        found.extend(others)
        return value

    def test_allOrNone(self) -> None:
        """If the last one may not be, none is."""
        with self.assertRaises(InvalidParameter):
            self.ask(18, self.topics({"topicName": "a.b"}))
        self.assertIsNone(self.rig.topics.config("T0"))

    def test_nothingBeforeAllAreChecked(self) -> None:
        """No topic is there before all are; then all are, and each is logged."""
        asked = self.begin(18, self.topics())
        self.assertIsNone(self.rig.topics.config("T0"))
        generation = self.rig.topics.generation
        lines = logged(lambda: self.rig.clock.advance(0))
        self.assertEqual(answered(asked).code, 0)
        self.assertEqual(self.rig.topics.generation, generation + 1)
        self.assertEqual(len(lines), MOST)
        self.assertEqual(self.rig.topics.names(), sorted(self.rig.topics.names()))

    def test_connectionThatCloses(self) -> None:
        """A connection that closes meanwhile does not leave half of the list."""
        self.begin(18, self.topics())
        self.rig.connection.close()
        self.rig.clock.advance(0)
        names = {f"T{number}" for number in range(MOST)}
        self.assertLessEqual(names, set(self.rig.topics.names()))

    def test_changedMeanwhile(self) -> None:
        """A topic that was changed while others were checked is checked again."""
        self.ask(18, {"topicConfigList": [self.timed("+reserve.time", "5")]})
        begun = self.rig.begin(
            18,
            {},
            dumps(
                {
                    "topicConfigList": [
                        self.timed("-reserve.time", ""),
                        *[{"topicName": f"T{number}"} for number in range(MOST - 1)],
                    ]
                }
            ),
        )
        self.rig.ask(215, {"topic": "A"})
        self.rig.clock.advance(0)
        with self.assertRaises(SystemFailure) as caught:
            answered(begun)
        self.assertIn("only add attribute", caught.exception.remark)
        self.assertIsNone(self.rig.topics.config("T0"))

    def test_changedAllTheTime(self) -> None:
        """A list whose topics are changed each time is not checked for ever."""

        def change() -> Iterator[None]:
            for step in range(50):
                names = [f"T{number}" for number in range(MOST)]
                self.rig.topics.put(
                    [TopicConfig(topic_name=name, perm=2 + step % 2) for name in names]
                )
                yield

        asked = self.begin(18, self.topics())
        self.rig.broker.slices.run(self, change())
        self.rig.clock.advance(0)
        with self.assertRaises(SystemBusy) as caught:
            answered(asked)
        self.assertIn("are changed all the time", caught.exception.remark)

    def timed(self, key: str, value: str) -> dict[str, object]:
        """Topic A with a change of an attribute."""
        return {"topicName": "A", "attributes": {key: value}}


class GroupListTests(FrameCase):
    """Request 225, whose groups are checked in slices."""

    def test_allOrNone(self) -> None:
        """If the last one may not be, none is."""
        value = LISTS[225](MOST - 1)
        groups = value["groupConfigList"]
        assert isinstance(groups, list)
        groups.append({"groupName": "G", "attributes": {"+a": "b"}})
        self.assertIn("unsupported key", self.refusal(225, value))
        self.assertIsNone(self.rig.groups.config("G0"))

    def test_allAtOnce(self) -> None:
        """All are there with one change of the table, in the order of their names."""
        generation = self.rig.groups.generation
        asked = self.begin(225, LISTS[225](MOST))
        self.assertIsNone(self.rig.groups.config("G0"))
        self.rig.connection.close()
        self.rig.clock.advance(0)
        self.assertEqual(answered(asked).code, 0)
        self.assertEqual(self.rig.groups.generation, generation + 1)
        names = [config.group_name for config in self.rig.groups.configs()]
        self.assertEqual(names, sorted(names))


class MappingTests(FrameCase):
    """Request 513, whose queues are read in slices."""

    def test_written(self) -> None:
        """The texts that queues keep are what is written of them."""
        self.ask(513, mapped(MOST))
        (detail,) = self.rig.broker.metadata.mappings.details.values()
        self.assertEqual(dumps(detail.written()), dumps(detail.to_json()))
        info = detail.info
        self.assertEqual(dumps(info.written()), dumps(info.to_json()))
        answer = self.rig.ask(351, {"topic": "S", "lo": "true"})
        value: Any = loads(answer.body)
        self.assertEqual(len(value["mappingDetail"]["hostedQueues"]), MOST)

    def test_logged(self) -> None:
        """A line of the log says how many queues there are, and not which."""
        lines = logged(lambda: self.ask(513, mapped(MOST)))
        self.assertIn(f"mapped {MOST} queues of topic 'S' of epoch 1", lines[-1])
        self.assertLess(max(map(len, lines)), 2000)

    def test_changeOfMappingAloneLogsNoTopic(self) -> None:
        """The topic is as it was: there is nothing to say of it."""
        self.ask(513, mapped(1))
        (line,) = logged(lambda: self.ask(513, {**mapped(1), "epoch": 2}))
        self.assertIn("mapped 1 queues of topic 'S' of epoch 2", line)

    def test_wrongItem(self) -> None:
        """As in RocketMQ the topic is taken even if its queues are not."""
        value = mapped(MOST)
        rows: Any = value["hostedQueues"]
        rows[str(MOST - 1)][0]["gen"] = -1
        self.assertIn("should not be negative", self.refusal(513, value))
        self.assertIsNotNone(self.rig.topics.config("S"))
        self.assertEqual(self.rig.broker.metadata.mappings.details, {})


class LockTests(FrameCase):
    """Requests 41 and 42, whose queues are read in slices."""

    def granted(self, answer: Deferred[Command | None]) -> int:
        """How many queues a client has been granted."""
        value: Any = loads(answered(answer).body)
        return len(value["lockOKMQSet"])

    def test_oneHasAll(self) -> None:
        """Of two clients that ask for the same queues at once, one gets all."""
        first = self.begin(41, locked(MOST))
        second = self.begin(41, {**locked(MOST), "clientId": "d"})
        self.rig.clock.advance(0)
        self.assertEqual([self.granted(first), self.granted(second)], [MOST, 0])
        self.assertEqual(self.ask(42, locked(MOST)).code, 0)
        self.assertEqual(self.rig.broker.clients.locks.count, 0)


class AckTests(FrameCase):
    """Request 200151, whose messages count, and not its check points alone."""

    def test_manyBits(self) -> None:
        """As many messages as are allowed, in the bits of one check point."""
        value: Any = acks(1)
        (ack,) = value["acks"]
        for count, refused in ((MOST, False), (MOST + 1, True)):
            ack["b"] = ((1 << count) - 1).to_bytes(MOST // 8 + 1, "little")
            if refused:
                words = self.refusal(200151, value)
                self.assertIn(f"{MOST + 1} acknowledged messages", words)
            else:
                self.assertEqual(self.ask(200151, value).code, 0)

    def test_storedStepByStep(self) -> None:
        """Each slice's acknowledgements are stored at its end, and all are before the
        answer."""
        counts = self.rig.broker.pop.log.written
        asked = self.begin(200151, acks(MOST))
        self.assertEqual(sum(counts.values()), 0)
        self.rig.clock.advance(0)
        self.assertEqual(answered(asked).code, 0)
        self.assertEqual(self.rig.batcher.drafts, [])
        self.assertEqual(sum(counts.values()), MOST)
