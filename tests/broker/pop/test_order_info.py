"""Tests of L{rocketbroker.broker.pop.order_info}: consumption in order."""

from __future__ import annotations

from rocketbroker.errors import MessageIllegal
from rocketbroker.wire.bodies.consumer_order_info import Given, read_table
from rocketbroker.wire.fastjson import dumps
from tests.broker.pop.pops import PopCase, bodies, handles, header_of
from tests.broker.rig import WALL_MS


class OrderTests(PopCase):
    """Pops in order."""

    def test_blocked(self) -> None:
        """A queue of which something is out gives nothing before that is acknowledged,
        to nobody; other queues do."""
        self.rig = self.make(queues=2)
        self.send("a", "b", "c")
        self.send("x", queue_id=1)
        answer = self.pop(order="true", maxMsgNums=2, queueId=0)
        self.assertEqual(bodies(answer), [b"a", b"b"])
        self.assertEqual(header_of(answer).revive_qid, 999)
        self.assertEqual(self.popped(order="true"), [b"x"])
        first, second = handles(answer)
        self.ack(second)
        self.assertEqual(self.popped(order="true", queueId=0), [])
        self.ack(first)
        self.assertEqual(self.popped(order="true", queueId=0), [b"c"])

    def test_again(self) -> None:
        """What is not acknowledged in time comes again, in order, with its count; and
        what is acknowledged at the beginning does not."""
        self.send("a", "b", "c")
        answer = self.pop(order="true")
        self.assertEqual(header_of(answer).order_count_info, "0 0 0")
        self.ack(handles(answer)[0])
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 1)
        self.pass_by(30)
        answer = self.pop(order="true")
        self.assertEqual(bodies(answer), [b"b", b"c"])
        counts = "0 qo0%1 1;0 qo0%2 1;0 0 1"
        self.assertEqual(header_of(answer).order_count_info, counts)

    def test_attempt(self) -> None:
        """A pop that is repeated with the same id gets the same again at once."""
        self.send("a", "b")
        self.assertEqual(self.popped(order="true", attemptId="1"), [b"a", b"b"])
        self.assertEqual(self.popped(order="true", attemptId="2"), [])
        answer = self.pop(order="true", attemptId="1")
        self.assertEqual(bodies(answer), [b"a", b"b"])
        self.assertEqual(header_of(answer).order_count_info, "0 0 0")

    def test_released(self) -> None:
        """A pop that waits is woken when the last acknowledgement comes, or when the
        time of what is out is over."""
        self.send("a", "b", "c")
        (handle,) = handles(self.pop(order="true", maxMsgNums=1))
        waiting = self.wait(order="true", maxMsgNums=1)
        self.ack(handle)
        self.assertEqual(self.answers(waiting), [[b"b"]])
        self.pass_by(20)
        waiting = self.wait(order="true")
        self.pass_by(9.5)
        self.assertFalse(waiting.called)
        self.pass_by(1)
        self.assertEqual(self.answers(waiting), [[b"b", b"c"]])

    def test_wrong(self) -> None:
        """What was not given out cannot be acknowledged; what was given out by another
        pop does nothing."""
        self.send("a", "b", "c")
        (handle,) = handles(self.pop(order="true", maxMsgNums=1))
        with self.assertRaises(MessageIllegal):
            self.ack(handle, offset=2)
        handle.pop_ms -= 1
        self.assertEqual(self.ack(handle).code, 0)
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 0)

    def test_reset(self) -> None:
        """A reset gives a queue free."""
        self.send("a", "b")
        self.popped(order="true")
        self.rig.offsets.reset("G", "T", 0, 1)
        self.assertEqual(self.popped(order="true"), [b"b"])

    def test_restart(self) -> None:
        """What is out is known after a restart."""
        self.send("a", "b", "c")
        (handle,) = handles(self.pop(order="true", maxMsgNums=1))
        self.pass_by(15)
        self.restart()
        self.assertEqual(self.popped(order="true"), [])
        self.ack(handle)
        self.assertEqual(self.popped(order="true"), [b"b", b"c"])


class FileTests(PopCase):
    """C{consumerOrderInfo.json}."""

    def test_form(self) -> None:
        """It is RocketMQ's: numbers as keys, and offsets after the first."""
        given = Given("att", WALL_MS, 30_000, [100, 101, 105])
        given.counts, given.visible_ms = {100: 1}, {100: WALL_MS + 50_000}
        given.used_ms = WALL_MS + 1
        wanted = (
            '{"a":"att","cm":0,"i":30000,"l":1700000000001,"o":[100,1,5],'
            '"oc":{100:1},"ot":{100:1700000050000},"popTime":1700000000000}'
        )
        self.assertEqual(dumps(given.to_json()).decode(), wanted)
        back = Given.from_json(given.to_json())
        self.assertEqual(dumps(back.to_json()).decode(), wanted)
        self.assertEqual(back.offsets, [100, 101, 105])

    def test_wrong(self) -> None:
        """Records that make no sense are named, and the others read."""
        given = Given("att", WALL_MS, 30_000, [100, 101]).to_json()
        table = {"T@G": {0: given, "x": given, 2: {"o": []}}}
        found, problems = read_table({"table": table})
        self.assertEqual(found.keys(), {("G", "T", 0)})
        self.assertEqual(len(problems), 2)
        self.assertEqual(read_table([]), ({}, ["the file is not an object."]))

    def test_kept(self) -> None:
        """It has the table, until the topic is gone."""
        order = self.rig.broker.pop.order
        self.send("a")
        self.popped(order="true")
        table = order.to_json()["table"]
        assert isinstance(table, dict)
        self.assertEqual(table.keys(), {"T@G"})
        self.rig.topics.delete("T")
        self.rig.broker.pop.save()
        self.assertEqual(order.to_json(), {"table": {}})
