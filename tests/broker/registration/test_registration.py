"""The registration of a broker with its name servers."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.queue_mappings import QueueMappings
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.registration.name_server_api import NameServerApi
from rocketbroker.broker.registration.name_servers import NameServers
from rocketbroker.broker.registration.registration import (
    PART_BYTES,
    Registration,
    parted,
)
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.registration import RegisterBrokerBody
from rocketbroker.wire.bodies.routes import BrokerData, TopicRouteData
from rocketbroker.wire.bodies.topics import DataVersion, TopicConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.headers.namesrv import RegisterBrokerRequestHeader
from tests.broker.callers import Call, Caller
from tests.broker.rig import NoLookup, services_of

SERVERS = ("one:1", "two:2")
ROUTE = RequestCode.GET_ROUTEINFO_BY_TOPIC


def registered(call: Call) -> tuple[list[str], DataVersion]:
    """The topics of a registration, and their version."""
    header = RegisterBrokerRequestHeader.from_ext(call.command.ext)
    body = RegisterBrokerBody.decode(call.command.body, header.compressed, 479)
    wrapper = body.topic_config_serialize_wrapper
    return list(wrapper.topic_config_table), wrapper.data_version


class RegistrationTests(SynchronousTestCase):
    """Registration at start, regularly, on changes; and the farewell."""

    def setUp(self) -> None:
        """A broker with two name servers."""
        self.make()

    def make(self, servers: tuple[str, ...] = SERVERS, **options: Any) -> None:
        """A broker with these settings."""
        self.clock = Clock()
        self.caller = Caller()
        broker = BrokerOptions(broker_name="b", broker_cluster_name="C", **options)
        file = JsonTable(MemoryDisk(), "/config/topics.json", at_once, Clock())
        self.topics = TopicTable(broker, file, lambda: 1000)
        calls = NameServerApi(self.caller, broker, "1.2.3.4:5", "1.2.3.4:6")
        self.services = services_of(self.clock, broker=broker)
        settings = BrokerSettings.from_properties({"namesrvAddr": ";".join(servers)})
        names = NameServers(settings, NoLookup(), at_once, self.services)
        static = QueueMappings("b", file, lambda: 1000)
        self.registration = Registration(
            self.clock, calls, names, broker, self.topics, static, self.services
        )

    def answer_all(self, body: bytes = b"") -> list[Call]:
        """Answer the requests that wait; all of them but those for a route."""
        calls = self.caller.take()
        for call in calls:
            call.answer(body=body)
        return [call for call in calls if call.command.code != ROUTE]

    def started(self) -> None:
        """Start, with both name servers answering."""
        done = self.registration.start()
        self.answer_all()
        self.successResultOf(done)

    def codes(self) -> list[tuple[str, int]]:
        """The requests that wait to be answered."""
        return [(call.address, call.command.code) for call in self.caller.calls]

    def test_start(self) -> None:
        """All name servers get all topics at once; ready when all have answered."""
        done = self.registration.start()
        first, second = self.caller.take()
        self.assertEqual((first.address, second.address), SERVERS)
        topics, version = registered(first)
        self.assertEqual(sorted(topics), sorted(self.topics.names()))
        self.assertEqual(version, self.topics.version)
        first.answer()
        self.assertNoResult(done)
        second.answer()
        self.successResultOf(done)
        self.assertEqual(self.registration.registered, 2)

    def test_alone(self) -> None:
        """A broker without name servers is ready at once and calls nobody."""
        self.make(())
        self.successResultOf(self.registration.start())
        self.assertTrue(self.registration.is_known)
        self.topics.put([TopicConfig(topic_name="T")])
        self.clock.advance(60)
        self.successResultOf(self.registration.announced(3.0))
        self.successResultOf(self.registration.stop())
        self.assertEqual(self.caller.calls, [])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_unreachable(self) -> None:
        """One that cannot be reached is said once, and tried until it can be."""
        with capturedLogs() as events:
            done = self.registration.start()
            first, second = self.caller.take()
            self.assertFalse(self.registration.is_known)
            first.answer()
            second.fail()
            self.successResultOf(done)
            self.assertEqual(self.registration.unreachable, {"two:2"})
            self.assertTrue(self.registration.is_known)
            self.clock.advance(2)
            (again,) = self.caller.take()
            self.assertEqual(again.address, "two:2")
            again.fail()
            self.clock.advance(2)
            (again,) = self.caller.take()
            again.answer()
        self.assertEqual(self.registration.unreachable, set())
        self.assertEqual([event["server"] for event in events], ["two:2", "two:2"])
        self.clock.advance(2)
        self.assertEqual(self.codes(), [])

    def test_brokenPeriod(self) -> None:
        """An error in one period is logged, and does not end the registrations."""
        self.make(force_register=False)
        self.started()
        self.caller.error = OSError("no descriptor is left")
        self.clock.advance(10)
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)
        self.clock.advance(30)
        self.assertEqual(self.codes(), [("one:1", 105), ("one:1", 322), ("two:2", 322)])

    def test_namesake(self) -> None:
        """A broker of the same name and id at the name servers is logged once for each
        address; this broker itself and its slaves are not."""
        self.started()
        answers = []
        for master in ("1.2.3.4:5", "6.6.6.6:6", "6.6.6.6:6", "7.7.7.7:7"):
            data = BrokerData(
                cluster="C", broker_name="b", broker_addrs={0: master, 1: "8.8.8.8:8"}
            )
            other = BrokerData(
                cluster="C", broker_name="other", broker_addrs={0: "9.9.9.9:9"}
            )
            route = TopicRouteData(broker_datas=[other, data])
            self.clock.advance(30)
            asked = self.caller.calls[0]
            self.assertEqual((asked.command.ext or {})["topic"], "b")
            with capturedLogs() as events:
                self.answer_all(dumps(route.to_json()))
            answers.append([event["address"] for event in events])
        self.assertEqual(answers, [[], ["6.6.6.6:6"], [], ["7.7.7.7:7"]])

    def test_noRoute(self) -> None:
        """A name server without an answer about this broker is no reason to warn."""
        self.started()
        self.clock.advance(10)
        with capturedLogs() as events:
            self.caller.calls.pop(0).answer(code=17)
            self.answer_all()
        self.assertEqual(events, [])

    def started_without_second(self) -> None:
        """Start, with the second name server failing."""
        done = self.registration.start()
        first, second = self.caller.take()
        first.answer()
        with capturedLogs():
            second.fail()
        self.successResultOf(done)

    def test_unreachableNotAwaited(self) -> None:
        """A change goes to those that answer; the others get it with all topics."""
        self.started_without_second()
        self.topics.put([TopicConfig(topic_name="T")])
        announced = self.registration.announced(3.0)
        self.clock.advance(0)
        self.assertEqual(self.codes(), [("one:1", 103)])
        self.answer_all()
        self.successResultOf(announced)
        self.clock.advance(2)
        (again,) = self.answer_all()
        self.assertEqual(again.address, "two:2")
        self.assertIn("T", registered(again)[0])
        self.assertEqual(self.codes(), [])

    def test_changedWhileTried(self) -> None:
        """A change while all topics are on their way makes them go once more."""
        self.started_without_second()
        self.clock.advance(2)
        (again,) = self.caller.take()
        self.topics.put([TopicConfig(topic_name="T")])
        self.clock.advance(0)
        self.answer_all()
        self.assertNotIn("T", registered(again)[0])
        again.answer()
        (last,) = self.answer_all()
        self.assertEqual(last.address, "two:2")
        self.assertIn("T", registered(last)[0])
        self.assertEqual(self.codes(), [])

    def test_refused(self) -> None:
        """A name server that answers with an error is tried again, too."""
        self.registration.start()
        with capturedLogs():
            for call in self.caller.take():
                call.answer(code=1)
        self.clock.advance(2)
        self.assertEqual(self.codes(), [("one:1", 103), ("two:2", 103)])

    def test_period(self) -> None:
        """After ten seconds, and then every period of the settings, all goes again."""
        self.started()
        self.clock.advance(9)
        self.assertEqual(self.codes(), [])
        self.clock.advance(1)
        self.assertEqual(len(self.answer_all()), 2)
        self.clock.pump([10.0, 10.0])
        self.assertEqual(self.codes(), [])
        self.clock.advance(10)
        self.assertEqual(len(self.answer_all()), 2)

    def test_periodBounds(self) -> None:
        """The period lies between ten and sixty seconds whatever the setting."""
        for setting, seconds in ((1, 10), (100000, 60)):
            self.make(register_name_server_period=setting)
            self.started()
            self.clock.advance(10)
            self.answer_all()
            self.clock.advance(seconds - 1)
            self.assertEqual(self.codes(), [])
            self.clock.advance(1)
            self.assertEqual(len(self.answer_all()), 2)

    def test_versionFirst(self) -> None:
        """Without forceRegister versions are compared; only a difference is sent."""
        self.make(force_register=False)
        self.started()
        self.clock.advance(10)
        self.assertEqual(self.codes(), [("one:1", 105), ("one:1", 322), ("two:2", 322)])
        self.answer_all()
        self.assertEqual(self.codes(), [])
        self.clock.advance(30)
        _, first, second = self.caller.take()
        first.answer()
        second.answer(ext={"changed": "true"})
        self.assertEqual(self.codes(), [("one:1", 103), ("two:2", 103)])

    def test_topicChanged(self) -> None:
        """Topics that one turn made or changed go at once, together, alone, sorted."""
        self.started()
        self.topics.put([TopicConfig(topic_name="U")])
        self.topics.put([TopicConfig(topic_name="T")])
        announced = self.registration.announced(3.0)
        self.clock.advance(0)
        first, second = self.caller.take()
        self.assertEqual(registered(first), (["T", "U"], self.topics.version))
        first.answer()
        self.assertNoResult(announced)
        second.answer()
        self.successResultOf(announced)
        self.successResultOf(self.registration.announced(3.0))

    def test_topicChangedMeanwhile(self) -> None:
        """Waiting for changes includes those that came during a registration."""
        self.started()
        self.topics.put([TopicConfig(topic_name="T")])
        self.clock.advance(0)
        self.topics.put([TopicConfig(topic_name="U")])
        announced = self.registration.announced(3.0)
        self.answer_all()
        self.assertNoResult(announced)
        self.clock.advance(0)
        self.answer_all()
        self.successResultOf(announced)

    def test_laterAnnouncement(self) -> None:
        """Who waits for one change does not wait for a later one under way."""
        self.started()
        calls = []
        waiting = []
        for name in ("T", "U"):
            self.topics.put([TopicConfig(topic_name=name)])
            waiting.append(self.registration.announced(3.0))
            self.clock.advance(0)
            calls.append(self.caller.take())
        for call in calls[0]:
            call.answer()
        self.successResultOf(waiting[0])
        self.assertNoResult(waiting[1])

    def test_gathered(self) -> None:
        """The first change of a large table goes at once; those of the next second go
        together, and who waits for the first does not wait for them."""
        self.topics.put([TopicConfig(topic_name=f"topic-{n}") for n in range(8000)])
        self.started()
        self.clock.advance(1)
        self.topics.put([TopicConfig(topic_name="T")])
        first = self.registration.announced(3.0)
        self.clock.advance(0)
        calls = self.caller.take()
        self.topics.put([TopicConfig(topic_name="U")])
        second = self.registration.announced(3.0)
        for call in calls:
            call.answer()
        self.assertEqual(registered(calls[0])[0], ["T"])
        self.successResultOf(first)
        self.clock.advance(0.5)
        self.topics.put([TopicConfig(topic_name="V")])
        self.assertEqual(self.codes(), [])
        self.assertNoResult(second)
        self.clock.advance(0.5)
        call, _ = self.answer_all()
        self.assertEqual(registered(call)[0], ["U", "V"])
        self.successResultOf(second)

    def test_announcedNoLonger(self) -> None:
        """Waiting for name servers ends after the given time; their answers
        that come afterwards are none of its business."""
        self.started()
        self.topics.put([TopicConfig(topic_name="T")])
        announced = self.registration.announced(2.0)
        self.clock.advance(1.9)
        self.assertNoResult(announced)
        self.clock.advance(0.1)
        self.successResultOf(announced)
        self.answer_all()
        self.successResultOf(self.registration.announced(2.0))

    def test_topicGone(self) -> None:
        """A topic that is deleted before it was announced is not announced."""
        self.started()
        self.topics.put([TopicConfig(topic_name="T")])
        self.topics.delete("T")
        self.clock.advance(0)
        self.assertEqual(self.codes(), [])
        self.successResultOf(self.registration.announced(3.0))

    def test_singleTopic(self) -> None:
        """With enableSingleTopicRegister a changed topic is a route of its own."""
        self.make(enable_single_topic_register=True)
        self.started()
        self.topics.put([TopicConfig(topic_name="T")])
        self.clock.advance(0)
        self.assertEqual(self.codes(), [("one:1", 217), ("two:2", 217)])
        announced = self.registration.announced(3.0)
        with capturedLogs() as events:
            for call in self.caller.take():
                call.fail()
        self.assertEqual(len(events), 2)
        self.successResultOf(announced)

    def test_split(self) -> None:
        """With enableSplitRegistration topics go in pieces, each of a newer version."""
        self.make(
            ("one:1",), enable_split_registration=True, split_registration_size=10
        )
        done = self.registration.start()
        (first,) = self.answer_all()
        (second,) = self.answer_all()
        self.successResultOf(done)
        some, before = registered(first)
        rest, after = registered(second)
        self.assertEqual((len(some), len(rest)), (10, 3))
        self.assertEqual(sorted(some + rest), sorted(self.topics.names()))
        self.assertGreater(after.counter, before.counter)

    def make_large(self, character: str = "x", characters: int = 1 << 19) -> None:
        """A broker with one name server, and topics for 20 MiB, unless said."""
        self.make(("one:1",))
        attributes = {"a": character * characters}
        self.topics.put(
            [
                TopicConfig(topic_name=f"large-{number}", attributes=attributes)
                for number in range(40)
            ]
        )

    def sent(self) -> list[tuple[list[str], DataVersion]]:
        """The topics and versions of all parts of a registration, each answered."""
        parts = []
        while calls := self.answer_all():
            parts += [registered(call) for call in calls]
        return parts

    def test_parts(self) -> None:
        """Topics that do not fit into one frame go in parts, whose versions differ, and
        of which the last has the table's; what that may do is said once."""
        self.make_large()
        with capturedLogs() as events:
            done = self.registration.start()
            parts = self.sent()
            self.successResultOf(done)
            self.registration.register_all(forced=True)
            self.sent()
        self.assertEqual([event["log_level"].name for event in events], ["warn"])
        self.assertIn("deleteTopicWithBrokerRegistration", formatEvent(events[0]))
        names = [name for part, _ in parts for name in part]
        self.assertEqual(names, self.topics.names())
        self.assertEqual(len(parts), events[0]["parts"])
        versions = [version for _, version in parts]
        self.assertEqual(len({version.timestamp for version in versions}), len(parts))
        self.assertEqual(versions[-1], self.topics.version)
        self.assertEqual(self.registration.registered, 2)

    def test_partsFit(self) -> None:
        """Each part fits into a frame by far, whatever the topics are written in."""
        for character, characters in (("x", 1 << 19), ("中", 1 << 18)):
            self.make_large(character, characters)
            self.registration.start()
            while self.caller.calls:
                (call,) = self.answer_all()
                self.assertLess(len(call.command.body), PART_BYTES + 1024)

    def test_partsAgain(self) -> None:
        """A name server that has the table at its version gets all parts with that one,
        so that permissions that it took away stay away; after a change, a failure or a
        new start of it the versions differ again."""
        self.make_large()
        self.registration.start()
        self.sent()
        self.registration.register_all(forced=True)
        versions = [version for _, version in self.sent()]
        self.assertEqual(versions, [self.topics.version] * len(versions))
        self.topics.delete("large-7")
        self.registration.register_all(forced=True)
        self.assertNotEqual(self.sent()[0][1], self.topics.version)
        self.registration.register_all(forced=True)
        self.assertEqual(self.sent()[0][1], self.topics.version)
        self.registration.register_all(forced=True)
        with capturedLogs():
            self.caller.take()[0].fail()
        self.clock.advance(2)
        self.assertNotEqual(self.sent()[0][1], self.topics.version)

    def test_partsOfLargeTopics(self) -> None:
        """A topic that is too large for a part is alone in one."""
        configs = [TopicConfig(topic_name=name) for name in "abcd"]
        for sizes, most, expected in (
            ([1, 9, 1, 1], 4, ["a", "b", "cd"]),
            ([9, 1, 1, 1], 2, ["a", "bc", "d"]),
            ([1, 1, 1, 1], 4, ["abc", "d"]),
        ):
            parts = parted(configs, sizes, most, 3)
            found = ["".join(one.topic_name for one in part) for part in parts]
            self.assertEqual(found, expected)
        self.assertEqual(parted([], [], 1, 1), [[]])

    def test_permission(self) -> None:
        """A broker that may only be read registers no topic as writable."""
        self.make(("one:1",), broker_permission=4)
        self.topics.put([TopicConfig(topic_name="T", perm=6)])
        self.registration.start()
        (call,) = self.caller.take()
        body = RegisterBrokerBody.decode(call.command.body, False, 479)
        table = body.topic_config_serialize_wrapper.topic_config_table
        self.assertEqual(table["T"].perm, 4)
        config = self.topics.config("T")
        assert config is not None
        self.assertEqual(config.perm, 6)

    def test_order(self) -> None:
        """A topic that name servers say is ordered becomes so; unknown ones do not."""
        self.topics.put([TopicConfig(topic_name="T")])
        self.registration.start()
        self.answer_all(b'{"table":{"T":"b:8","U":"b:8"}}')
        config = self.topics.config("T")
        assert config is not None
        self.assertTrue(config.order)
        self.assertIsNone(self.topics.config("U"))

    def test_stop(self) -> None:
        """The farewell goes to all that know the broker; nothing happens after it."""
        self.registration.start()
        with capturedLogs() as events:
            first, second = self.caller.take()
            first.answer()
            second.fail()
            self.services.stop()
            done = self.registration.stop()
            (call,) = self.caller.take()
            self.assertEqual((call.address, call.command.code), ("one:1", 104))
            call.fail()
        self.successResultOf(done)
        self.assertEqual(len(events), 2)
        self.topics.put([TopicConfig(topic_name="T")])
        self.clock.advance(100)
        self.assertEqual(self.codes(), [])
