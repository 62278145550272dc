"""Messages that go to another broker."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.messages.forwarded_message import due_message, half_message
from tests.broker.escaping import stored


class EscapedTests(SynchronousTestCase):
    """The two kinds of them."""

    def test_due(self) -> None:
        """A delayed message goes to its real topic, and is not delayed again."""
        found = due_message(
            stored(0x30 | 1, DELAY="3", TIMER_DELAY_SEC="5", a="b", **{"__CRC32#": "1"})
        )
        self.assertEqual((found.topic, found.queue_id, found.sys_flag), ("T", 3, 1))
        self.assertEqual(
            found.properties,
            {"a": "b", "REAL_TOPIC": "T", "REAL_QID": "3", "WAIT": "false"},
        )

    def test_half(self) -> None:
        """A half message becomes a prepared one of its real topic, without what the
        checks have noted; a delay that it asks for stays."""
        found = half_message(
            stored(
                1,
                PGROUP="P",
                DELAY="3",
                TRAN_PREPARED_QUEUE_OFFSET="5",
                TRANSACTION_CHECK_TIMES="2",
            )
        )
        self.assertEqual((found.topic, found.queue_id, found.sys_flag), ("T", 3, 5))
        self.assertEqual(
            found.properties,
            {
                "DELAY": "3",
                "PGROUP": "P",
                "REAL_TOPIC": "T",
                "TRAN_MSG": "true",
                "WAIT": "false",
            },
        )

    def test_text(self) -> None:
        """The properties go as a producer writes them."""
        self.assertEqual(
            due_message(stored()).property_text,
            "REAL_TOPIC\x01T\x02REAL_QID\x013\x02WAIT\x01false\x02",
        )
