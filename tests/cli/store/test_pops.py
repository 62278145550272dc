"""Tests of L{rocketbroker.cli.store.pops} and L{rocketbroker.storetools.popped}."""

from __future__ import annotations

from rocketbroker.broker.metadata.offset_files import LIGHT_FILE, PLAIN_FILE
from rocketbroker.cli.store.pops import order_remarks, order_rows, popped
from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.interfaces import Draft
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools import inspect
from rocketbroker.storetools.inspect import Row
from rocketbroker.storetools.pending_timers import PendingTimers
from rocketbroker.storetools.popped import StoredCheckPoints
from rocketbroker.storetools.verify.report import Fault, Remark
from rocketbroker.testing.files import MemoryDisk
from tests.broker.pop.pops import (
    INVISIBLE_MS,
    REVIVE_TOPIC,
    SEND,
    PopCase,
    handles,
)
from tests.broker.rig import HOST, WALL_MS, send_ext

ORDERS = "/store/config/consumerOrderInfo.json"


class PoppedTests(PopCase):
    """A directory with messages in flight."""

    def save(self) -> None:
        """Write down all as it is."""
        self.rig.store.flush()
        self.rig.broker.pop.save()
        self.rig.offsets.save()
        self.rig.clock.advance(2)

    def opened(self) -> tuple[StoreReader, StoredCheckPoints]:
        """The directory as a kill would leave it."""
        disk: MemoryDisk = self.rig.disk.image(keep_all=True)
        reader = StoreReader(disk, "/store")
        self.addCleanup(reader.close)
        return reader, popped(reader, PendingTimers(reader))

    def cat(self, topic: str, queue: int = 0) -> list[Row]:
        """What is said of each message of a queue."""
        reader, pops = self.opened()
        found = []
        for message in inspect.messages(reader, topic, queue, 0, None):
            assert isinstance(message, StoredMessage)
            found.append(pops.more(message))
        return found

    def test_waiting(self) -> None:
        """What is in flight while check points wait in the wheel, and what is
        acknowledged of it."""
        self.send("a", "b", "c")
        handle, *_ = handles(self.pop())
        self.ack(handle)
        self.pass_by(3)
        self.save()
        due_ms = WALL_MS + INVISIBLE_MS
        (row,) = self.opened()[1].rows()
        self.assertEqual(
            row,
            {
                "group": "G",
                "popped_topic": "T",
                "check_points": 1,
                "in_flight": 2,
                "next_due_ms": due_ms,
                "last_due_ms": due_ms,
            },
        )
        point, ack = self.cat(TIMER_TOPIC)
        self.assertEqual(
            point,
            {
                "check_point": "ck",
                "group": "G",
                "popped_topic": "T",
                "popped_queue": 0,
                "offsets": [0, 1, 2],
                "handle": f"0 {WALL_MS} {INVISIBLE_MS} 0 0 broker-a 0",
                "revive_ms": due_ms,
                "in_flight": [1, 2],
            },
        )
        self.assertEqual((ack["check_point"], ack["offsets"]), ("ack", [0]))
        self.assertEqual(ack.keys(), point.keys())

    def test_revived(self) -> None:
        """Check points in the revive topic are open until all is over, and worked off
        from then on."""
        self.send("a")
        self.pop()
        self.pass_by(30)
        (point,) = self.cat(REVIVE_TOPIC)
        self.assertEqual((point["check_point"], point["in_flight"]), ("ck", [0]))
        self.pass_by(4)
        self.save()
        self.assertEqual(list(self.opened()[1].rows()), [])
        (point,) = self.cat(REVIVE_TOPIC)
        self.assertEqual(point["in_flight"], [])

    def test_revivedWithLmq(self) -> None:
        """With enableLmq another file says how far check points are worked off."""
        self.send("a")
        self.pop()
        self.pass_by(34)
        self.save()
        folder = "/store/config/"
        self.rig.disk.rename(folder + PLAIN_FILE, folder + LIGHT_FILE)
        self.assertEqual(list(self.opened()[1].rows()), [])

    def test_others(self) -> None:
        """Other messages have nothing to do with it; those that wait for a time have
        the same columns."""
        self.send("a")
        self.assertEqual(self.cat("T"), [{}])
        due = f"TIMER_DELIVER_MS\x01{WALL_MS + 60_000}"
        ext = send_ext("T", 0, due)
        self.assertEqual(self.rig.ask(SEND, ext, b"a").code, 0)
        self.pop()
        self.rig.scheduler.dispatch()
        timer, point = self.cat(TIMER_TOPIC)
        self.assertIsNone(timer["check_point"])
        self.assertEqual(timer.keys(), point.keys())

    def test_findings(self) -> None:
        """What cannot come again is told."""
        self.send("a")
        self.pop()
        self.save()
        self.assertEqual(list(self.opened()[1].findings()), [])
        body = b'{"t":"U","c":"G","q":0,"so":5,"pt":1,"it":2,"n":1}'
        queue = self.rig.store.queue("rmq_sys_REVIVE_LOG_other", 0)
        for each in (b"no check point", body):
            draft = Draft(queue, each, b"TAGS\x01ck\x02", 0, 0, 0, HOST, 0, 0, None)
            self.rig.store.append([draft])
        self.rig.scheduler.dispatch()
        fault, remark = self.opened()[1].findings()
        assert isinstance(fault, Fault) and isinstance(remark, Remark)
        self.assertIn("cannot be read", fault.text)
        self.assertIn("G has a message of U/0 in flight", remark.text)

    def test_order(self) -> None:
        """What groups have that pop in order; records that make no sense are told."""
        self.send("a", "b")
        handle, _ = handles(self.pop(order="true"))
        self.ack(handle)
        self.save()
        reader, _ = self.opened()
        (row,) = order_rows(reader)
        self.assertEqual((row["group"], row["queue"]), ("G", 0))
        self.assertEqual(row["in_flight"], [1])
        self.assertEqual(row["due_ms"], WALL_MS + INVISIBLE_MS)
        self.assertEqual(list(order_remarks(reader)), [])
        file = self.rig.disk.open(ORDERS, create=True)
        file.truncate(0)
        file.pwrite(b'{"table":{"T@G":{0:{"o":[]}}}}', 0)
        (remark,) = order_remarks(self.opened()[0])
        self.assertIn("The record of T@G, queue 0: nothing was given", remark.text)
