"""Tests of L{rocketbroker.broker.pop.revive}: what is given out again, and when."""

from __future__ import annotations

import errno

from twisted.logger import capturedLogs

from rocketbroker.broker.pop.revive_queue import ReviveQueue
from rocketbroker.records.check_points import Ack, CheckPoint
from rocketbroker.records.names import REVIVE_GROUP
from rocketbroker.store.interfaces import PUT_OK, Draft
from tests.broker.pop.pops import REVIVE_TOPIC, PopCase, handles, header_of, messages
from tests.broker.rig import HOST, WALL_MS


class RestartTests(PopCase):
    """What is in flight when a broker dies."""

    def save(self) -> None:
        """Write down how far all is, as the broker does every few seconds."""
        self.rig.store.flush()
        self.rig.broker.pop.save()
        self.rig.offsets.save()

    def test_inFlight(self) -> None:
        """It comes again when its time is over, whoever revives it; what was
        acknowledged does not."""
        self.send("a", "b", "c")
        first, *_ = handles(self.pop())
        self.ack(first)
        self.save()
        self.restart()
        self.assertEqual(self.popped(), [])
        self.pass_by(34)
        self.assertEqual(self.popped(), [b"b", b"c"])

    def test_unsaved(self) -> None:
        """Messages whose offset was not written down are popped again."""
        self.send("a")
        self.pop()
        self.restart()
        self.assertEqual(self.popped(), [b"a"])

    def test_revived(self) -> None:
        """What has been given out again, and written down, is not given out a second
        time."""
        self.send("a")
        self.pop()
        self.pass_by(34)
        self.save()
        self.restart()
        self.assertEqual(self.popped(), [b"a"])
        self.assertEqual(len(self.rig.records(0, "%RETRY%G_T")), 1)

    def test_offset(self) -> None:
        """The group's offset is that of the last check point that is over, and stays
        before one that is open."""
        self.send("a", "b")
        answer = self.pop(maxMsgNums=1)
        queue = header_of(answer).revive_qid
        self.ack(handles(answer)[0])

        def offset() -> int:
            self.save()
            return self.rig.offsets.query(REVIVE_GROUP, REVIVE_TOPIC, queue)

        self.pass_by(10)
        self.assertEqual(offset(), -1)
        self.pass_by(24)
        self.assertEqual(offset(), 1)

    def test_notFlushed(self) -> None:
        """It does not pass what the disk does not have yet."""
        self.rig = self.make(flushIntervalCommitLog="1000000")
        self.send("a")
        queue = header_of(self.pop()).revive_qid
        self.pass_by(34)
        self.rig.broker.pop.save()
        query = self.rig.offsets.query
        self.assertEqual(query(REVIVE_GROUP, REVIVE_TOPIC, queue), -1)
        self.save()
        self.assertEqual(query(REVIVE_GROUP, REVIVE_TOPIC, queue), 0)


class FailureTests(PopCase):
    """What cannot be given out again."""

    def test_fullDisk(self) -> None:
        """What the disk does not take comes when there is room again, and gets later
        the more often that fails."""
        self.send("a")
        self.pop()
        self.pass_by(31)
        self.rig.disk.fail("pwrite", errno.ENOSPC, times=10_000)
        with capturedLogs():
            self.pass_by(20)
            self.assertEqual(self.popped(), [])
            self.rig.disk.heal()
            self.pass_by(20)
        self.assertEqual(self.popped(), [b"a"])

    def test_largeProperties(self) -> None:
        """A message that has no room for other properties comes again without them, and
        as one of the retry topic, by which its consumer finds its handle."""
        text = "k\x01" + 32_755 * "x" + "\x02"
        self.rig.append(b"a", properties=text.encode())
        self.pop()
        self.pass_by(34)
        (message,) = messages(self.pop())
        self.assertEqual(message.topic, "%RETRY%G_T")
        self.assertEqual(message.property_bytes, text.encode())

    def test_gone(self) -> None:
        """Messages that are gone are counted, and the others come."""
        self.send("a", "b")
        self.pop()
        (first, _) = self.rig.records()
        self.rig.disk.open("/store/commitlog/" + "0" * 20).pwrite(
            b"?", first.position + 4
        )
        with capturedLogs():
            self.pass_by(34)
            self.assertEqual(self.popped(), [b"b"])
        self.assertEqual(self.rig.broker.pop.revive.lost, 1)

    def test_nonsense(self) -> None:
        """Messages of the revive topic that make no sense are passed."""
        queue = self.rig.store.queue(REVIVE_TOPIC, 0)
        for body, tag in ((b"{}", "ck"), (b"x", "ack"), (b"{}", "other")):
            own = f"TAGS\x01{tag}\x02TIMER_DELIVER_MS\x01x\x02".encode()
            draft = Draft(queue, body, own, 0, 0, 0, HOST, 0, 0, None)
            self.rig.store.append([draft])
            self.assertEqual(draft.status, PUT_OK)
        self.rig.scheduler.dispatch()
        self.pass_by(2)
        (first, *_) = self.rig.broker.pop.revive.queues
        self.assertEqual((first.next_offset, first.malformed), (3, 2))

    def elsewhere(self, re_puts: int) -> None:
        """A check point of a broker that does not answer is read."""
        self.send("a")
        self.popped()
        point = CheckPoint("T", "G", 0, 0, WALL_MS, 1, "broker-x", [0], re_puts)
        queue = self.rig.store.queue(REVIVE_TOPIC, 0)
        body = point.encode()
        draft = Draft(queue, body, b"TAGS\x01ck\x02", 0, 0, 0, HOST, 0, 0, None)
        self.rig.store.append([draft])
        self.rig.scheduler.dispatch()
        with capturedLogs():
            self.pass_by(5)

    def test_elsewhere(self) -> None:
        """A message of another broker is not looked for here: if it cannot be had
        there, it is tried again later."""
        self.elsewhere(17)
        revive = self.rig.broker.pop.revive
        self.assertEqual((revive.re_put, revive.lost), (1, 0))
        self.assertEqual(self.popped(), [])

    def test_givenUp(self) -> None:
        """With skipWhenCKRePutReachMaxTimes not for ever."""
        for re_puts, lost in ((16, 0), (17, 1)):
            self.rig = self.make(skipWhenCKRePutReachMaxTimes="true")
            self.elsewhere(re_puts)
            revive = self.rig.broker.pop.revive
            self.assertEqual((revive.re_put, revive.lost), (1 - lost, lost))

    def test_stray(self) -> None:
        """Acknowledgements without a check point are passed."""
        self.send("a")
        (handle,) = handles(self.pop())
        handle.pop_ms += 5
        self.ack(handle)
        self.pass_by(34)
        self.assertEqual(self.popped(), [b"a"])
        queue = self.rig.broker.pop.revive.queues[handle.revive_queue]
        self.assertEqual(queue.strays, 1)


class ManyTests(PopCase):
    """More than one step takes."""

    def test_all(self) -> None:
        """All come again, each once, by the steps of all revive queues."""
        sent = [f"{n}" for n in range(300)]
        self.send(*sent)
        while self.popped(maxMsgNums=3):
            pass
        self.pass_by(36)
        again: list[bytes] = []
        for _ in range(20):
            again += self.popped(invisibleTime=300_000)
        self.assertEqual(sorted(again), sorted(each.encode() for each in sent))
        revived = self.rig.broker.pop.revive.revived
        self.assertEqual(revived, {("G", "T", PUT_OK): 300})

    def test_overtaken(self) -> None:
        """What was stored at once does not say that all before it was brought: an
        acknowledgement may still wait in the timer."""
        place = self.rig.store.queue(REVIVE_TOPIC, 0)
        queue = ReviveQueue(place, 0)
        for start, more in enumerate(("", f"TIMER_OUT_MS\x01{WALL_MS}\x02")):
            point = CheckPoint("T", "G", 0, start, WALL_MS, 1000, "broker-a", [0])
            own = f"TAGS\x01ck\x02TIMER_DELIVER_MS\x01{WALL_MS + 5000}\x02{more}"
            draft = Draft(
                place, point.encode(), own.encode(), 0, 0, 0, HOST, 0, 0, None
            )
            self.rig.store.append([draft])
            queue.take([*self.rig.records(topic=REVIVE_TOPIC)][-1], "broker-a")
            ripe = queue.ripe(WALL_MS + 9000, 0)
            self.assertEqual(len(ripe), 2 * start)

    def test_busy(self) -> None:
        """While pops come all the time, the timer has not entered all; but it has
        brought what was due before those were stored that it has not."""
        timer = self.rig.broker.pop.revive._timer
        entering = self.rig.broker.timer.service.entering
        self.send("a", "b", "c")
        self.pop(maxMsgNums=1)
        self.rig.scheduler.dispatch()
        self.assertEqual((entering.behind(), timer.brought_ms()), (1, 0))
        self.pass_by(4)
        self.assertEqual(entering.behind(), 0)
        self.assertEqual(timer.brought_ms(), self.rig.wall_ms() // 1000 * 1000)
        self.pop(maxMsgNums=1)
        self.pass_by(0.2)
        entered_ms = self.rig.wall_ms() - 200
        self.rig.clock.advance(1.7)
        self.pop(maxMsgNums=1)
        self.rig.scheduler.dispatch()
        self.assertEqual((entering.behind(), timer.brought_ms()), (1, entered_ms))

    def test_untilThen(self) -> None:
        """What the timer has brought is ripe, two seconds after its time."""
        place = self.rig.store.queue(REVIVE_TOPIC, 0)
        queue = ReviveQueue(place, 0)
        point = CheckPoint("T", "G", 0, 0, WALL_MS, 1000, "broker-a", [0])
        draft = Draft(place, point.encode(), b"", 0, 0, 0, HOST, 0, 0, None)
        draft.properties = b"TAGS\x01ck\x02"
        self.rig.store.append([draft])
        (message,) = self.rig.records(topic=REVIVE_TOPIC)
        queue.take(message, "broker-a")
        for passed, brought, ripe in (
            (9000, 1000, 0),
            (9000, 1001, 1),
            (3001, 1001, 1),
            (3000, 3000, 0),
            (9000, 0, 0),
        ):
            found = queue.ripe(WALL_MS + passed, brought and WALL_MS + brought)
            self.assertEqual(len(found), ripe)

    def test_over(self) -> None:
        """Of what is ripe only that is left over of which a message is, however many
        there are; the rest is closed, all of it at once."""
        place = self.rig.store.queue(REVIVE_TOPIC, 0)
        for start in range(40):
            point = CheckPoint("T", "G", 0, start, WALL_MS, 1000, "broker-a", [0, 1])
            last = start if start == 30 else start + 1
            offsets = list(range(start, last + 1))
            ack = Ack("T", "G", 0, start, WALL_MS, "broker-a", offsets)
            for tag, body in (("ck", point.encode()), (ack.tag, ack.encode())):
                own = f"TAGS\x01{tag}\x02".encode()
                draft = Draft(place, body, own, 0, 0, 0, HOST, 0, 0, None)
                self.rig.store.append([draft])
        queue = ReviveQueue(place, 0)
        for message in self.rig.records(topic=REVIVE_TOPIC):
            queue.take(message, "broker-a")
        self.assertEqual(queue.ripe(WALL_MS + 3000, WALL_MS + 3000), [])
        self.assertEqual(queue.open, 40)
        (left,) = queue.ripe(WALL_MS + 3001, WALL_MS + 1001)
        self.assertEqual((left.left(), queue.open), ([31], 1))

    def test_properties(self) -> None:
        """A message keeps what it has, and where it was born in time."""
        self.send("a", tag="x")
        (before,) = messages(self.pop())
        self.pass_by(34)
        (after,) = self.rig.records(0, "%RETRY%G_T")
        self.assertEqual(after.tags, "x")
        self.assertEqual(after.born_ms, before.born_ms)
        self.assertEqual(after.born_host, HOST)
        self.assertEqual(after.unique_key, before.unique_key)
