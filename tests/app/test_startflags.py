"""Flags of all servers, and the ready line."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.startflags import ReadyBroker, StartFlags, reached, ready_json
from rocketbroker.errors import ConfigurationError


class StartFlagsTests(SynchronousTestCase):
    """L{StartFlags}."""

    def test_settingsWinOverTheFile(self) -> None:
        """--set is repeatable, wins over the file, and the last one counts."""
        flags = StartFlags.from_texts(["a = 2", "b=", "c=x=y", "a=3"])
        self.assertEqual(
            flags.over({"a": "1", "d": "4"}),
            {"a": "3", "b": "", "c": "x=y", "d": "4"},
        )

    def test_metricsPortWinsOverSet(self) -> None:
        """0 is any free port, off is none; the key's 0 stays none."""
        key = "metricsPromExporterPort"
        for text, value, is_any in (
            ("0", "0", True),
            ("off", "0", False),
            ("5557", "5557", False),
        ):
            flags = StartFlags.from_texts([f"{key}=7"], metrics_port=text)
            self.assertEqual(flags.over({key: "1"}), {key: value})
            self.assertEqual(flags.is_any_metrics_port, is_any)
        flags = StartFlags.from_texts([f"{key}=0"])
        self.assertEqual(flags.over({key: "1"}), {key: "0"})
        self.assertFalse(flags.is_any_metrics_port)

    def test_topicsHaveTheirQueues(self) -> None:
        """Each topic once; the name ends at the last colon."""
        flags = StartFlags.from_texts(topics=["a:4", "b:16384"])
        self.assertEqual(flags.topics, {"a": 4, "b": 16384})

    def refused(self, **flags: object) -> str:
        """The sentence that refuses flags."""
        return str(
            self.assertRaises(ConfigurationError, StartFlags.from_texts, **flags)
        )

    def test_nonsenseIsOneSentence(self) -> None:
        """It names the flag, the value and what it must be."""
        for text in ("flushDiskType", "=x", ""):
            self.assertEqual(
                self.refused(settings=[text]),
                f"--set cannot be {text!r}: it must be KEY=VALUE, as in "
                "flushDiskType=SYNC_FLUSH.",
            )
        for text, problem in (
            ("a", "it must be NAME:QUEUES, as in orders:4"),
            (":4", "it must be NAME:QUEUES, as in orders:4"),
            ("a:four", "it must be NAME:QUEUES, as in orders:4"),
            ("a:0", "a topic has from 1 to 16384 queues"),
            ("a:16385", "a topic has from 1 to 16384 queues"),
            ("TBW102:4", "that is a topic of the system"),
            ("a b:4", "The specified topic contains illegal characters"),
        ):
            said = self.refused(topics=[text])
            self.assertIn(f"--topic cannot be {text!r}: {problem}", said)
            self.assertEqual(said.count("\n"), 0)
        for text in ("none", "-1", "65536", ""):
            self.assertIn("0 for any that is free", self.refused(metrics_port=text))
        self.assertIn("text, json", self.refused(output="xml"))


class ReadyTests(SynchronousTestCase):
    """The ready line as JSON."""

    def test_readyLineHasItsKeys(self) -> None:
        """All keys in their order; programs may rely on them."""
        broker = ReadyBroker(name="b", id=0, address="127.0.0.1:2")
        line = ready_json("127.0.0.1:1", [broker], "127.0.0.1:3", "/s", 7)
        self.assertEqual(
            line,
            '{"event":"ready","namesrv":"127.0.0.1:1","brokers":[{"name":"b","id":0,'
            '"address":"127.0.0.1:2"}],"metrics":"127.0.0.1:3","grpc":null,'
            '"store":"/s","pid":7}',
        )
        bare = json.loads(ready_json(None, [], None, None, 7))
        self.assertEqual(bare["brokers"], [])
        self.assertIsNone(bare["metrics"])
        testing = json.loads(ready_json(None, [], None, None, 7, is_testing=True))
        self.assertEqual(testing, {**bare, "testing": True})

    def test_whatListensEverywhereIsReachedByLoopback(self) -> None:
        """A port that is open on all addresses, on one, and none."""
        self.assertEqual(reached("", 5), "127.0.0.1:5")
        self.assertEqual(reached("10.0.0.1", 5), "10.0.0.1:5")
        self.assertIsNone(reached("", 0))
