"""What a message is, by its properties."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.messages.message_types import message_type_of
from tests.broker.rig import UNIQUE, Rig, send_ext

SHARDED = "__SHARDINGKEY\x01s\x02"


class MessageTypeTests(SynchronousTestCase):
    """Types and what they count."""

    def test_types(self) -> None:
        """A transaction wins against a sharding key, and that against a delay."""
        self.assertEqual(message_type_of({}), "normal")
        self.assertEqual(message_type_of({"TRAN_MSG": "false"}), "normal")
        for name in ("DELAY", "TIMER_DELAY_SEC", "__STARTDELIVERTIME"):
            self.assertEqual(message_type_of({name: "1"}), "delay")
            sharded = {name: "1", "__SHARDINGKEY": "s"}
            self.assertEqual(message_type_of(sharded), "fifo")
            self.assertEqual(
                message_type_of({**sharded, "TRAN_MSG": "true"}), "transaction"
            )

    def counted(self, ext: dict[str, str]) -> set[tuple[str, str]]:
        """Topic and type under which messages are counted that are sent both ways."""
        rig = Rig({})
        self.addCleanup(rig.close)
        rig.topic("T", 1)
        rig.ask(310, send_ext(), b"x")
        before = {one: one.messages for one in rig.sending.counters()}
        if not rig.hot(310, ext, b"x"):
            rig.begin(310, ext, b"x")
        rig.batcher.flush()
        return {
            (one.topic, one.message_type)
            for one in rig.sending.counters()
            if one.messages > before.get(one, 0)
        }

    def test_counted(self) -> None:
        """A message counts under the topic that it is stored in, as what it is."""
        own = f"UNIQ_KEY\x01{UNIQUE}\x02"
        for more, topic, kind in (
            ("", "T", "normal"),
            (SHARDED, "T", "fifo"),
            ("__STARTDELIVERTIME\x015\x02", "T", "delay"),
            ("DELAY\x011\x02", "SCHEDULE_TOPIC_XXXX", "delay"),
            (SHARDED + "DELAY\x011\x02", "SCHEDULE_TOPIC_XXXX", "fifo"),
            ("TRAN_MSG\x01true\x02", "RMQ_SYS_TRANS_HALF_TOPIC", "transaction"),
        ):
            ext = send_ext(properties=own + more)
            self.assertEqual(self.counted(ext), {(topic, kind)}, more)

    def test_anyTypeIsTaken(self) -> None:
        """A topic's own type refuses no message, and makes none slower."""
        rig = Rig({})
        self.addCleanup(rig.close)
        for kind in ("NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "UNSPECIFIED"):
            rig.topic(kind, 1, attributes={"message.type": kind, "reserve.time": "5"})
            for more in ("", SHARDED):
                ext = send_ext(kind, properties=f"UNIQ_KEY\x01{UNIQUE}\x02{more}")
                self.assertEqual(rig.ask(310, ext, b"x").code, 0)
                self.assertTrue(rig.hot(310, ext, b"x"))
            rig.batcher.flush()
            self.assertEqual(len(rig.records(topic=kind)), 4)
