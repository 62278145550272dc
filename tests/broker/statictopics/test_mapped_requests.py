"""Requests about logical queues, at two brokers between which one moves."""

from __future__ import annotations

import attrs

from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.topics import TopicConfigAndQueueMapping
from rocketbroker.wire.command import JSON, Command
from rocketbroker.wire.fastjson import loads
from rocketbroker.wire.fields import object_of
from rocketbroker.wire.frames import encode
from tests.broker.rig import fields_for, pull_ext, send_ext
from tests.broker.statictopics.pair import A, B, PairCase, item


class MappedRequestTests(PairCase):
    """Sends, pulls and offsets of logical queues."""

    def test_send(self) -> None:
        """A send to a logical queue is stored in its physical queue; the answer has
        the logical queue and offset."""
        self.assertEqual(self.sent(A, 3), [0, 1, 2])
        self.assertEqual(self.sent(B, 2, queue_id=1), [0, 1])
        stored = self.brokers["b"].store.queue("T", 0)
        self.assertEqual(stored.next_offset, 2)

    def test_sendBatch(self) -> None:
        """All forms of a send are mapped."""
        for code, ext in (
            (10, fields_for(10, send_ext("T", 1))),
            (310, send_ext("T", 1)),
        ):
            answer = self.ask(code, ext, b"x", B)
            self.assertEqual((answer.code, (answer.ext or {})["queueId"]), (0, "1"))

    def test_sendAnywhere(self) -> None:
        """A send to no queue takes one that the broker leads."""
        self.move()
        self.assertEqual((self.send(B, -1).ext or {})["queueId"], "1")
        self.epoch += 1000
        self.queues[1] = (*self.queues[1], item("a", 1, 1, 10))
        self.map_to("a", "b")
        self.assertEqual((self.send(B, -1).ext or {})["queueId"], "0")

    def test_notLeader(self) -> None:
        """A broker that does not lead the queue says so, in RocketMQ's words."""
        remarks = {
            310: "T-1 does not exit in request process of current broker a",
            11: "T-1 cannot find mapping item in request process of current broker a",
            31: "T-1 is not leader in broker a, request code 31",
        }
        exts = {310: send_ext("T", 1), 11: pull_ext(0, 1)}
        for code, remark in remarks.items():
            ext = exts.get(code, {"topic": "T", "queueId": "1"})
            answer = self.ask(code, ext, b"x")
            self.assertEqual((answer.code, answer.remark), (501, remark))

    def test_physical(self) -> None:
        """With lo=false the queue is a physical one."""
        self.sent(B, 1, queue_id=1)
        answer = self.ask(30, {"topic": "T", "queueId": "0", "lo": "false"}, port=B)
        self.assertEqual(answer.ext, {"offset": "1"})

    def test_otherTopics(self) -> None:
        """Topics beside a static one are served as ever."""
        self.ask(310, send_ext("U", d="1"), b"x")
        answers = [self.ask(310, send_ext("U"), b"x") for _ in range(3)]
        self.assertEqual([answer.code for answer in answers], [0, 0, 0])
        self.assertEqual(self.ask(11, {**pull_ext(), "topic": "U"}).code, 0)
        sending = self.brokers["a"].send.sending
        self.assertEqual(self.brokers["a"].static_topics.mapped.mapped, 0)
        self.assertEqual(sending.hot_sends + sending.general_sends, 4)

    def test_hotSends(self) -> None:
        """The hot way takes none of its sends, also when its physical queue is known
        there: they would get to the queue of that number."""
        self.sent(B, 2, queue_id=1)
        table = self.brokers["b"].main
        entries = {entry.code: entry for entry in table.hot.values()}
        connection = RecordedConnection(b"\x0a\0\0\2", 4711)
        for code in (310, 10):
            taken = {}
            for topic in ("T", "U"):
                ext = fields_for(code, send_ext(topic, 0))
                self.ask(code, {**ext, "lo": "false"}, b"x", B)
                header = encode(Command(code, ext, opaque=1), JSON)[8:]
                taken[topic] = entries[code].responder(connection, header, b"x")
            self.assertEqual(taken, {"T": False, "U": True})

    def test_move(self) -> None:
        """After a move the queue goes on at the other broker, from a higher offset; a
        reader of all of it gets each message once, with rising offsets."""
        self.assertEqual(self.sent(A, 5), [0, 1, 2, 3, 4])
        self.move()
        self.assertEqual(self.send(A).code, 501)
        self.assertEqual(self.pull(A, 0).code, 501)
        self.assertEqual(self.sent(B, 3), [10, 11, 12])
        found = self.drain(B)
        self.assertEqual([at for at, _ in found], [0, 1, 2, 3, 4, 10, 11, 12])
        bodies = [b"%d" % number for number in (0, 1, 2, 3, 4, 0, 1, 2)]
        self.assertEqual([body for _, body in found], bodies)

    def test_undecided(self) -> None:
        """While it is not known where the new item begins, it takes messages, whose
        offset is not told; readers wait at the end of the old one."""
        self.sent(A, 2)
        self.epoch += 1000
        self.queues[0] = (item("a", 0), item("b", 1, 1, -1))
        self.map_to("b", "a")
        self.assertEqual(self.sent(B, 1), [-1])
        self.assertEqual(len(self.drain(B)), 2)
        self.assertEqual(self.pull(B, 2).code, 19)
        self.assertEqual(self.offset(30, B), 2)
        self.queues[0] = (item("a", 0), item("b", 1, 1, 10))
        self.map_to("b", "a")
        self.assertEqual([at for at, _ in self.drain(B)], [0, 1, 10])

    def test_moveBack(self) -> None:
        """A queue that comes back to a broker goes on in another of its queues."""
        self.sent(A, 2)
        self.move()
        self.sent(B, 2)
        self.epoch += 1000
        self.queues[0] = (*self.queues[0], item("a", 1, 2, 20))
        self.map_to("a", "b")
        self.assertEqual(self.sent(A, 1), [20])
        found = self.drain(A)
        self.assertEqual([at for at, _ in found], [0, 1, 10, 11, 20])

    def test_held(self) -> None:
        """A pull at the end of the queue waits for what comes; one at the end of an
        item that is not the last goes on at once."""
        request = Command(11, {**pull_ext(), "sysFlag": "6"})
        waiting = self.client.invoke(f"127.0.0.1:{A}", request, 30.0)
        self.network.settle()
        self.assertNoResult(waiting)
        self.sent(A, 1)
        self.network.advance(1)
        self.network.settle()
        self.assertEqual(self.successResultOf(waiting).code, 0)
        self.move()
        answer = self.pull(B, 1, sysFlag="6")
        self.assertEqual(answer.code, 20)
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "10")

    def test_offsets(self) -> None:
        """Begin and end of the whole queue."""
        self.sent(A, 3)
        self.assertEqual((self.offset(31, A), self.offset(30, A)), (0, 3))
        self.move()
        self.sent(B, 2)
        self.assertEqual((self.offset(31, B), self.offset(30, B)), (0, 12))

    def test_time(self) -> None:
        """A time is looked for in all items; the first message's time is that of the
        first item."""
        times: list[int] = []
        for port in (A, A, B, B):
            if len(times) == 2:
                self.move()
            times.append(self.wall_ms())
            self.sent(port, 1)
            self.network.advance(10)
        times.append(self.wall_ms())
        found = [self.offset(29, B, timestamp=str(at)) for at in times]
        self.assertEqual(found, [0, 1, 10, 11, 12])
        upper = {"boundaryType": "UPPER"}
        found = [self.offset(29, B, timestamp=str(at), **upper) for at in times]
        self.assertEqual(found, [0, 1, 1, 11, 11])
        first = self.ask(32, {"topic": "T", "queueId": "0"}, port=B)
        self.assertEqual(first.ext, {"timestamp": str(times[0])})

    def test_commit(self) -> None:
        """An offset is kept where its item is, and found at whichever broker leads."""
        self.sent(A, 5)
        self.assertEqual(self.commit(A, 3), 0)
        self.assertEqual(self.offset(14, A), 3)
        self.move()
        self.assertEqual(self.offset(14, B), 3)
        self.assertEqual(self.commit(B, 4), 0)
        self.assertEqual(self.brokers["a"].metadata.offsets.query("G", "T", 0), 4)
        self.assertEqual(self.offset(14, B), 4)
        self.assertEqual(self.commit(B, 12), 0)
        self.assertEqual(self.brokers["b"].metadata.offsets.query("G", "T", 1), 2)
        self.assertEqual(self.offset(14, B), 12)

    def commit(self, port: int, offset: int) -> int:
        """Say how far the group is; the code of the answer."""
        ext = {"consumerGroup": "G", "topic": "T", "queueId": "0"}
        return self.ask(15, {**ext, "commitOffset": str(offset)}, port=port).code

    def test_noCommit(self) -> None:
        """A group without an offset gets none of a queue that has moved."""
        self.move()
        ext = {"consumerGroup": "G", "topic": "T", "queueId": "0"}
        answer = self.ask(14, ext, port=B)
        remark = "Not found, maybe this group consumer boot first"
        self.assertEqual((answer.code, answer.remark), (22, remark))

    def test_pullCommits(self) -> None:
        """What a pull commits is the logical offset, if its item has it."""
        self.sent(A, 5)
        self.pull(A, 4, sysFlag="5", commitOffset="4")
        self.assertEqual(self.brokers["a"].metadata.offsets.query("G", "T", 0), 4)
        self.move()
        self.sent(B, 3)
        self.pull(B, 12, sysFlag="5", commitOffset="12")
        self.assertEqual(self.brokers["b"].metadata.offsets.query("G", "T", 1), 2)
        self.pull(B, 12, sysFlag="5", commitOffset="4")
        self.assertEqual(self.brokers["b"].metadata.offsets.query("G", "T", 1), 2)

    def test_gone(self) -> None:
        """As long as the other broker does not answer, nothing of it is told, and
        offsets do not begin anew."""
        self.sent(A, 2)
        self.move()
        self.stop(self.brokers["a"])
        ext = {"consumerGroup": "G", "topic": "T", "queueId": "0"}
        self.assertEqual(self.ask(14, ext, port=B).code, 1)
        self.assertEqual(self.pull(B, 0).code, 1)
        self.assertEqual(self.sent(B, 1), [10])

    def test_start(self) -> None:
        """The mapping outlives the broker."""
        self.sent(A, 2)
        self.move()
        disk = self.brokers["b"].context.files
        self.stop(self.brokers["b"])
        self.disk, self.port = disk, B  # type: ignore[assignment]
        self.running(brokerName="b")
        self.assertEqual(self.sent(B, 1), [10])

    def test_route(self) -> None:
        """Name servers are told which broker leads which queue, also at a start."""
        self.move()
        for _ in range(2):
            route = loads(self.ask(105, {"topic": "T"}, port=9876).body)
            assert isinstance(route, dict)
            infos = route["topicQueueMappingByBroker"]
            self.assertEqual(infos["a"]["currIdMap"], {})
            self.assertEqual(infos["b"]["currIdMap"], {"0": 1, "1": 0})
            self.assertEqual(infos["b"]["epoch"], 2000)
            self.names.stop()
            self.network.advance(1)
            self.names = self.name_server()
            self.network.advance(60)
            self.network.settle()

    def test_config(self) -> None:
        """351 has the mapping, if it is asked for."""
        for lo, there in (("true", True), ("false", False)):
            answer = self.ask(351, {"topic": "T", "lo": lo})
            found = object_of(answer.body, TopicConfigAndQueueMapping.from_json)
            self.assertEqual(found.mapping is not None, there)
        table = loads(self.ask(21, {}).body)
        assert isinstance(table, dict)
        self.assertEqual(list(table["topicQueueMappingDetailMap"]), ["T"])

    def test_progress(self) -> None:
        """Of a queue in which the group has no offset, 208 says -1 and not 0."""
        answer = loads(self.ask(208, {"consumerGroup": "G", "topic": "T"}).body)
        assert isinstance(answer, dict)
        found = {each["consumerOffset"] for each in answer["offsetTable"].values()}
        self.assertEqual(found, {-1})

    def test_refused(self) -> None:
        """A mapping that is older than the broker's is refused, unless it is forced."""
        self.move()
        self.epoch -= 500
        self.map_to("a", code=1)
        self.map_to("a", force="true")
        mappings = self.brokers["a"].metadata.mappings
        self.assertEqual(mappings.details["T"].epoch, self.epoch)
        other = attrs.evolve(mappings.details["T"], bname="c")
        self.assertEqual(self.map("a", other).code, 1)
        other = attrs.evolve(mappings.details["T"], topic="V")
        self.assertEqual(self.map("a", other).code, 29)

    def test_delete(self) -> None:
        """With the topic its mapping goes, and the hot way is as it was."""
        self.assertEqual(self.ask(215, {"topic": "T"}).code, 0)
        self.assertEqual(self.brokers["a"].metadata.mappings.details, {})
        self.ask(310, send_ext("T", d="1"), b"x")
        self.network.advance(1)
        before = self.brokers["a"].static_topics.mapped.mapped
        self.assertEqual(self.ask(310, send_ext("T"), b"x").code, 0)
        self.assertEqual(self.brokers["a"].static_topics.mapped.mapped, before)
