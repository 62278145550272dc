"""Settings that change while the broker runs are obeyed by all of its parts.

Each part is made from the settings of the start, and most of them keep what they need
of it. That none keeps an old value is tested for all settings at once: a broker whose
settings were changed is the same, attribute by attribute, as one that was started with
the new ones. What else has to happen at a change has a test of its own.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator, Mapping

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.room import LateRoom
from rocketbroker.broker.running_settings import RunningSettings
from rocketbroker.config.keyed import KeyedOptions, text_of
from rocketbroker.errors import BrokerError
from rocketbroker.remoting.periodic import PeriodicCall
from rocketbroker.wire.bodies.registration import RegisterBrokerBody
from rocketbroker.wire.bodies.topics import DataVersion, TopicConfig
from rocketbroker.wire.headers.namesrv import RegisterBrokerRequestHeader
from tests.broker.callers import Call, Caller
from tests.broker.rig import Rig, answered, pull_ext, send_ext

#: Values other than the default, where the number before it is not one.
OTHERS = {
    "regionId": "north",
    "defaultMessageRequestMode": "POP",
    "shortPollingTimeMills": "900",
    "deleteWhen": "05",
    "haTrustedAddresses": "10.0.0.7;10.1.0.0/16",
    "totalReplicas": "3",
    "rocketbrokerProxyProtocolFrom": "10.0.0.0/8",
    "logicalDiskSpaceCleanForciblyThreshold": "0.7",
    # Below this no default of ours would be seen to matter.
    "registerNameServerPeriod": "20000",
}

#: Attributes that tell how a broker came to be as it is.
HISTORY = {
    "generation",
    "_generation",
    "_generations",
    "version",
    "_changes",
    "warmed",
    # Whom a slave follows is nothing that a request may change.
    "_trusted_masters",
}

#: Tables that a request changes otherwise; see L{DefaultTopicTests}.
TABLES = {"_configs", "_sorted"}

#: The settings themselves, and what tells which changes a broker has seen.
WITHOUT_SETTINGS = (DataVersion, JsonTable, RunningSettings)

SIMPLE = (int, float, str, bytes, bool, type(None))


def other_values() -> dict[str, str]:
    """A value other than the default for each setting that may change."""
    settings = Rig({}).settings
    found = {}
    for part in settings.parts():
        names = part.keys()
        for key in sorted(part.running_keys()):
            value = getattr(part, names[key])
            if isinstance(value, bool):
                found[key] = text_of(not value)
            elif key not in OTHERS:
                low = part.BOUNDS.get(names[key], (0, 0))[0]
                found[key] = text_of(value - 1 if value > low else value + 1)
            else:
                found[key] = OTHERS[key]
    return found


def state(thing: object, path: str, seen: set[int]) -> Iterator[tuple[str, object]]:
    """All that can be reached from an object of ours, leaf by leaf, with its path."""
    if isinstance(thing, SIMPLE):
        yield path, thing
        return
    if isinstance(thing, KeyedOptions):
        # Each part that has them is looked at.
        for key in thing.running_keys():
            yield f"{path}.{key}", getattr(thing, thing.keys()[key])
        return
    # Who kept the context could read the settings of the start for ever.
    assert path == ".context" or not isinstance(thing, BrokerContext), path
    if id(thing) in seen or isinstance(thing, WITHOUT_SETTINGS):
        return
    seen.add(id(thing))
    if isinstance(thing, Mapping):
        for key, value in thing.items():
            yield from state(value, f"{path}[{key!r:.40}]", seen)
    elif isinstance(thing, list | tuple | deque):
        for number, value in enumerate(thing):
            yield from state(value, f"{path}[{number}]", seen)
    elif isinstance(thing, types.MethodType):
        yield from state(thing.__self__, f"{path}()", seen)
    elif isinstance(thing, types.FunctionType):
        for cell in thing.__closure__ or ():
            yield from state(cell.cell_contents, f"{path}()", seen)
    elif isinstance(thing, PeriodicCall):
        yield f"{path}.period", thing.period
    elif is_ours(thing):
        left_out = {"settings"} if isinstance(thing, BrokerContext) else set()
        for name in sorted(attributes(thing) - left_out):
            if name not in HISTORY | TABLES:
                yield from state(getattr(thing, name), f"{path}.{name}", seen)


def is_ours(thing: object) -> bool:
    """Whether it belongs to a broker, and not to the world around it."""
    module = type(thing).__module__
    return module.startswith("rocketbroker.") and ".testing." not in module


def attributes(thing: object) -> set[str]:
    """The names of what an object holds."""
    slots = getattr(type(thing), "__slots__", ())
    return {name for name in slots if hasattr(thing, name)} | set(
        getattr(thing, "__dict__", ())
    )


class SameTests(SynchronousTestCase):
    """A broker that was changed and one that was started so."""

    def started(self, **given: str) -> Rig:
        """A broker at work, with all of its rooms."""
        rig = Rig(given)
        self.addCleanup(rig.close)
        rig.broker.start()
        self.make_rooms(rig)
        return rig

    def make_rooms(self, rig: Rig) -> None:
        """Make the rooms that the first request makes."""
        for room in rig.broker.rooms:
            if isinstance(room, LateRoom):
                room.made()

    def test_same(self) -> None:
        """No part keeps an old value."""
        changed = self.started()
        self.assertEqual(changed.change(**other_values()).code, 0)
        self.assert_same(changed)

    def test_roomMadeAfterTheChangeKeepsNoOldValue(self) -> None:
        """What the first request makes has the settings in force."""
        changed = Rig({})
        self.addCleanup(changed.close)
        changed.broker.start()
        self.assertEqual(changed.change(**other_values()).code, 0)
        self.make_rooms(changed)
        self.assert_same(changed)

    def assert_same(self, changed: Rig) -> None:
        """A broker is like one that was started with the other values."""
        others = other_values()
        wanted = dict(state(self.started(**others).broker, "", set()))
        found = dict(state(changed.broker, "", set()))
        self.assertGreater(len(found), 1000)
        wrong = {
            path: (found.get(path), value)
            for path, value in wanted.items()
            if found.get(path) != value
        }
        self.assertEqual(wrong, {})


class AtOnceTests(SynchronousTestCase):
    """What had been decided with the old values is decided anew."""

    def setUp(self) -> None:
        """A broker that has sent and pulled a message in the hot way."""
        self.make()
        self.rig.topic(order=True)
        self.rig.ask(310, send_ext(), b"body")
        self.rig.ask(11, pull_ext())
        self.assertTrue(self.rig.hot(310, send_ext(), b"body"))
        self.assertTrue(self.rig.hot(11, pull_ext()))

    def make(self, client: Caller | None = None, **given: str) -> None:
        """A broker."""
        self.rig = Rig(given, client=client)
        self.addCleanup(self.rig.close)

    def refusal(self, code: int, ext: dict[str, str], body: bytes = b"b") -> str:
        """The remark of a request that is refused, in either way."""
        if self.rig.hot(code, ext, body):
            self.rig.batcher.flush()
            answer = self.rig.answers()[-1]
            self.assertNotEqual(answer.code, 0)
            return str(answer.remark)
        try:
            answer = self.rig.ask(code, ext, body)
        except BrokerError as error:
            return str(error)
        self.assertNotEqual(answer.code, 0)
        return str(answer.remark)

    def test_permission(self) -> None:
        """Without the permission to write ordered topics take no sends, and without the
        one to read nothing is pulled; with both again all is as before."""
        self.rig.change(brokerPermission=4)
        self.assertIn(
            "sending message is forbidden", self.refusal(310, send_ext(), b"b")
        )
        self.rig.change(brokerPermission=2)
        self.assertIn("pulling message is forbidden", self.refusal(11, pull_ext()))
        self.rig.change(brokerPermission=6)
        self.assertEqual(self.rig.ask(310, send_ext(), b"body").code, 0)
        self.assertTrue(self.rig.hot(310, send_ext(), b"body"))

    def test_region(self) -> None:
        """Messages and answers carry the new region, in the hot way, too."""
        self.rig.change(regionId="north", traceOn=False)
        self.rig.answers()
        for hot in (False, True):
            if hot:
                self.assertTrue(self.rig.hot(310, send_ext(), b"body"))
                self.rig.batcher.flush()
                answer = self.rig.answers()[-1]
            else:
                answer = self.rig.ask(310, send_ext(), b"body")
            ext = answer.ext or {}
            self.assertEqual((ext["MSG_REGION"], ext["TRACE_ON"]), ("north", "false"))
            stored = self.rig.records()[-1].properties
            self.assertEqual(stored["MSG_REGION"], "north")

    def test_size(self) -> None:
        """A larger body than was allowed is taken, and a smaller one no longer."""
        self.rig.change(maxMessageSize=2000)
        for size, code in ((2001, 13), (2000, 0)):
            self.rig.topic(order=False)
            with_size = self.begun(b"x" * size)
            self.assertEqual(with_size, code, size)
        self.rig.change(maxMessageSize=3000)
        self.assertEqual(self.begun(b"x" * 2001), 0)

    def begun(self, body: bytes) -> int:
        """The code that a send is answered with."""
        try:
            return self.rig.ask(310, send_ext(), body).code
        except BrokerError as error:
            return error.code

    def test_transactions(self) -> None:
        """Half messages can be refused from now on."""
        half = send_ext(f=str(4), i="TRAN_MSG\x01true\x02PGROUP\x01P\x02")
        self.rig.topic(order=False)
        self.assertEqual(self.rig.ask(310, half, b"body").code, 0)
        self.rig.change(rejectTransactionMessage=True)
        self.assertIn("transaction message is forbidden", self.refusal(310, half, b"b"))

    def test_index(self) -> None:
        """Without an index no key is found; with one again also what came meanwhile."""
        rig = self.rig
        rig.broker.start()
        rig.change(messageIndexEnable=False)
        ext = send_ext(properties="KEYS\x01k\x02WAIT\x01true\x02")
        rig.ask(310, ext, b"body")
        rig.clock.pump([0.01] * 100)
        query = {
            "topic": "T",
            "key": "k",
            "maxNum": "32",
            "beginTimestamp": "0",
            "endTimestamp": str(1 << 60),
        }
        self.assertEqual(rig.ask(12, query).code, 22)
        rig.change(messageIndexEnable=True)
        rig.clock.pump([0.01] * 100)
        self.assertEqual(rig.store.index_behind, 0)
        self.assertEqual(rig.ask(12, query).code, 0)

    def test_checks(self) -> None:
        """The next round of checks comes a new interval after the change."""
        rig = self.rig
        rig.broker.start()
        rig.change(transactionCheckInterval=2000, transactionTimeOut=0)
        half = send_ext(f=str(4), i="TRAN_MSG\x01true\x02PGROUP\x01P\x02")
        rig.topic(order=False)
        rig.ask(310, half, b"body")
        rig.clock.pump([1.0] * 3)
        self.assertEqual(rig.transactions.checks.unasked, 1)


class DefaultTopicTests(SynchronousTestCase):
    """The topic whose settings new topics inherit."""

    def made(self, rig: Rig, name: str) -> TopicConfig | None:
        """The topic that a send makes, with up to 16 queues."""
        try:
            rig.ask(310, send_ext(name, d="16"), b"body")
        except BrokerError:
            return None
        return rig.topics.config(name)

    def test_switched(self) -> None:
        """Sends make topics while the switch is on, also if it was off at the start."""
        rig = Rig({"autoCreateTopicEnable": "false"})
        self.addCleanup(rig.close)
        self.assertIsNone(self.made(rig, "T1"))
        rig.change(autoCreateTopicEnable=True)
        made = self.made(rig, "T2")
        assert made is not None
        self.assertEqual((made.write_queue_nums, made.perm), (8, 6))
        rig.change(autoCreateTopicEnable=False)
        self.assertIsNone(self.made(rig, "T3"))

    def test_queues(self) -> None:
        """New topics have as many queues as the setting says now."""
        rig = Rig({})
        self.addCleanup(rig.close)
        rig.change(defaultTopicQueueNums=3)
        made = self.made(rig, "T1")
        assert made is not None
        self.assertEqual((made.read_queue_nums, made.write_queue_nums), (3, 3))

    def test_others(self) -> None:
        """Other built-in topics follow their switches; an administrator's change of one
        stays where its switch does."""
        rig = Rig({"clusterTopicEnable": "false"})
        self.addCleanup(rig.close)
        rig.topic("broker-a", 5)
        names = "cluster-a", "RMQ_SYS_TRACE_TOPIC"
        self.assertEqual(self.permissions(rig, names), [1, None])
        rig.change(clusterTopicEnable=True, traceTopicEnable=True)
        self.assertEqual(self.permissions(rig, names), [7, 6])
        self.assertTrue(rig.topics.is_system("RMQ_SYS_TRACE_TOPIC"))
        own = rig.topics.config("broker-a")
        assert own is not None
        self.assertEqual(own.write_queue_nums, 5)
        rig.change(brokerTopicEnable=False, traceTopicEnable=False)
        self.assertEqual(self.permissions(rig, ("broker-a", *names)), [1, 7, 6])

    def permissions(self, rig: Rig, names: tuple[str, ...]) -> list[int | None]:
        """The permission of each topic; None where it is not there."""
        configs = [rig.topics.config(name) for name in names]
        return [None if config is None else config.perm for config in configs]


class AnnouncedTests(SynchronousTestCase):
    """Name servers and the broker's permission."""

    def setUp(self) -> None:
        """A broker that two name servers know, and that has a topic."""
        self.caller = Caller()
        self.rig = Rig({"namesrvAddr": "one:1;two:2"}, client=self.caller)
        self.addCleanup(self.rig.close)
        self.rig.broker.start()
        for call in self.caller.take():
            call.answer()
        self.rig.topic("T")
        self.rig.clock.advance(0.1)
        for call in self.caller.take():
            call.answer()

    def permission(self, call: Call) -> int:
        """The permission of the topic in a registration."""
        header = RegisterBrokerRequestHeader.from_ext(call.command.ext)
        body = RegisterBrokerBody.decode(call.command.body, header.compressed, 479)
        return body.topic_config_serialize_wrapper.topic_config_table["T"].perm

    def test_permission(self) -> None:
        """All are told at once, with a new version, and the answer waits for them."""
        before = self.rig.topics.version
        answer = self.rig.begin(25, {}, b"brokerPermission=4")
        calls = self.caller.take()
        self.assertEqual([call.address for call in calls], ["one:1", "two:2"])
        self.assertEqual([self.permission(call) for call in calls], [4, 4])
        self.assertNotEqual(self.rig.topics.version, before)
        assert isinstance(answer, Deferred)
        for call in calls:
            self.assertNoResult(answer)
            call.answer()
        self.assertEqual(answered(answer).code, 0)

    def test_silent(self) -> None:
        """A name server that does not answer is not waited for very long."""
        answer = self.rig.begin(25, {}, b"brokerPermission=4")
        assert isinstance(answer, Deferred)
        self.rig.clock.advance(2.9)
        self.assertNoResult(answer)
        self.rig.clock.advance(0.2)
        self.assertEqual(answered(answer).code, 0)

    def test_same(self) -> None:
        """The permission that it has already is no news, nor is another setting."""
        self.rig.change(brokerPermission=6, regionId="north")
        self.assertEqual(self.caller.calls, [])

    def test_period(self) -> None:
        """The next registrations come in the new period."""
        self.rig.change(registerNameServerPeriod=15000)
        for _ in range(40):
            self.rig.clock.advance(1)
            for call in self.caller.take():
                call.answer()
        self.assertEqual(
            self.rig.broker.registration.registration.registered, 2 * (1 + 1 + 3)
        )
