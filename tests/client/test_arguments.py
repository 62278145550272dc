"""What users give by mistake."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.errors import ConfigurationError, MessageIllegal
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.topic_view import MessageQueue
from tests.client.cluster import ClientCluster


class ArgumentTests(SynchronousTestCase):
    """One sentence, of an error that says whose fault it is, and nothing is sent."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime
        self.mq: Any = self.here.session()

    def test_sendsOfWhatCannotBeMeant(self) -> None:
        """Times, queues, keys."""
        wrong: list[dict[str, Any]] = [
            {"delay": "5"},
            {"delay": -5},
            {"at": "2026-01-01"},
            {"queue": "b1:0"},
            {"queue": MessageQueue("U", "b1", 0)},
            {"order_key": 7},
            {"keys": 5},
            {"keys": ["a b"]},
            {"tag": ["a"]},
            {"properties": ["a"]},
        ]
        for options in wrong:
            with self.assertRaises(MessageIllegal):
                self.runtime.finish(self.mq.send("T", "x", **options))
        timeouts: list[Any] = ["5", -1]
        for timeout in timeouts:
            with self.assertRaises(ConfigurationError):
                self.runtime.finish(self.mq.send("T", "x", timeout=timeout))
        self.assertEqual(self.runtime.requests, [])

    def test_batchesAreOfMessages(self) -> None:
        """Not of texts; one message is a batch of one."""
        wrong: list[Any] = ["x", ["x"], None, Message("T", "x")]
        for messages in wrong[:3]:
            with self.assertRaises(MessageIllegal):
                self.runtime.finish(self.mq.send_batch(messages))
        (result,) = self.runtime.finish(self.mq.send_batch(wrong[3]))
        self.assertEqual(len(result.message_ids), 1)

    def test_listenersAndQueues(self) -> None:
        """A decorator that was not called, queues as texts."""
        with self.assertRaises(ConfigurationError):
            self.mq.on(print, group="G")
        with self.assertRaises(ConfigurationError):
            self.mq.on("T", group="G")(5)
        with self.assertRaises(ConfigurationError):
            self.mq.lite_pull("G", queues=["b1:0"])
        with self.assertRaises(ConfigurationError):
            self.mq.lite_pull("G", queues=[])
        with self.assertRaises(ConfigurationError):
            self.runtime.finish(self.mq.consumer("T", "G").next("5"))

    def test_otherNameIsProposed(self) -> None:
        """Where there is one like it."""
        with self.assertRaisesRegex(ConfigurationError, "did you mean 'tags'"):
            self.mq.consumer("T", "G", tag="a")

    def test_momentIsADatetimeOrANumber(self) -> None:
        """A start, as a time of delivery."""
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        seconds = moment.timestamp()
        self.assertEqual(ConsumerSettings(group="G", start=moment).start, seconds)
