"""C{rocketbroker message view} and C{find}."""

from __future__ import annotations

import json

from tests.cli.cluster.cluster import VerbCase


class MessageTests(VerbCase):
    """Three messages of topic T."""

    def setUp(self) -> None:
        """Send them, a minute apart."""
        super().setUp()
        self.cluster.topic("T", 1)
        self.ids = []
        for words in (
            ("apple", "-k", "fruit", "--tag", "A"),
            ("pear", "-k", "fruit", "-k", "p", "-p", "colour=green"),
            ("\udce4nut", "--tag", "B"),
        ):
            body, *options = words
            stdin = body.encode("utf-8", "surrogateescape")
            call = ("message", "send", "T", "-i", "whole", "-o", "jsonl", *options)
            row = json.loads(self.call(*call, stdin=stdin).stdout)
            self.ids.append(row["id"])
            self.cluster.rig.clock.advance(60)
            self.cluster.machine.now += 60

    def found(self, *words: str) -> list[object]:
        """The offsets of what is found."""
        return [
            row["offset"]
            for row in self.kind("message", "message", "find", "T", *words)
        ]

    def test_find(self) -> None:
        """By key, tag, text, time, place; the first ones."""
        self.assertEqual(self.found("-k", "fruit"), [0, 1])
        self.assertEqual(self.found("-k", "fruit", "--tag", "A"), [0])
        self.assertEqual(self.found("--tag", "B"), [2])
        self.assertEqual(self.found("--grep", "ea"), [1])
        self.assertEqual(self.found("--from", "1700000050000"), [1, 2])
        self.assertEqual(self.found("--until", "1700000060000"), [0, 1])
        self.assertEqual(self.found("--queue", "broker-a:0", "--offset", "1"), [1])
        self.assertEqual(self.found("-c", "2"), [0, 1])
        self.assertEqual(self.found("--queue", "broker-a:0"), [0, 1, 2])

    def test_table(self) -> None:
        """People see a line each: bodies as text, or in hex."""
        out = self.call("message", "find", "T").stdout
        self.assertIn("apple", out)
        self.assertIn("e4 6e 75 74", out)

    def test_notFound(self) -> None:
        """Nothing found ends with 3."""
        for words in (
            ("T", "-k", "x"),
            ("T", "--grep", "x"),
            ("X",),
            ("T", "--queue", "broker-a:0", "--offset", "9"),
        ):
            self.call("message", "find", *words, status=3)
        self.call("message", "find", "T", "--offset", "1", status=2)

    def test_view(self) -> None:
        """By the id of a send, or by the offset id alone."""
        (row,) = self.kind("message", "message", "view", self.ids[1], "-t", "T")
        self.assertEqual((row["body"], row["keys"]), ("pear", ["fruit", "p"]))
        self.assertEqual(row["properties"], {"colour": "green"})
        self.assertEqual(row["id"], self.ids[1])
        (again,) = self.kind("message", "message", "view", row["offset_id"])
        self.assertEqual(again, row)
        out = self.call("message", "view", row["offset_id"]).stdout
        self.assertIn("properties         colour=green\n", out)

    def test_body(self) -> None:
        """A body as it is; in JSON what is no text is in base 64."""
        result = self.call("message", "view", self.ids[2], "-t", "T", "--body")
        self.assertEqual(result.stdout_bytes, b"\xe4nut")
        (row,) = self.kind("message", "message", "view", self.ids[2], "-t", "T")
        self.assertEqual(row["body_base64"], "5G51dA==")
        self.assertNotIn("body", row)

    def test_notThere(self) -> None:
        """Ids that are none, and of no message; strangers' addresses are not asked."""
        result = self.call("message", "view", self.ids[0], status=3)
        self.assertIn("give --topic TOPIC", result.stderr)
        self.call("message", "view", "x", status=3)
        self.call("message", "view", "0" * 32, "-t", "T", status=3)
        place = "0A00000100002A9F" + "F" * 15
        self.call("message", "view", place + "0", status=3)
        self.assertEqual(
            {w for w, _ in self.cluster.machine.requests}, {"ns:9876", "10.0.0.1:10911"}
        )


class KeyTests(VerbCase):
    """Messages whose keys share a hash: in Java that of Aa is that of BB."""

    def setUp(self) -> None:
        """Two topics whose names share a hash."""
        super().setUp()
        self.cluster.topic("AaTopic", 1)
        self.cluster.topic("BBTopic", 1)

    def send(self, topic: str, body: str, key: str, tag: str = "x") -> None:
        """Send a message; the next one is stored 10 ms later."""
        self.call("message", "send", topic, body, "-k", key, "--tag", tag)
        self.cluster.rig.clock.advance(0.01)

    def found(self, topic: str, *words: str) -> list[object]:
        """The bodies of what is found."""
        rows = self.kind("message", "message", "find", topic, *words)
        return [row["body"] for row in rows]

    def test_otherTopicOfItsHash(self) -> None:
        """A message of another topic is not found."""
        self.send("AaTopic", "in-A", "Aa")
        self.send("BBTopic", "in-B", "BB")
        self.call("message", "find", "AaTopic", "-k", "BB", status=3)
        self.assertEqual(self.found("BBTopic", "-k", "BB"), ["in-B"])

    def test_olderWithFilters(self) -> None:
        """More is asked for when filters, or other keys, leave too few."""
        self.send("AaTopic", "older", "Aa")
        self.send("AaTopic", "newer", "BB")
        self.assertEqual(self.found("AaTopic", "-k", "Aa", "-c", "1"), ["older"])
        self.send("AaTopic", "first", "busy", "first")
        for _ in range(3):
            self.cluster.rig.clock.advance(1)
            for number in range(40):
                self.send("AaTopic", f"rest {number}", "busy")
        for words, wanted in (
            ("--tag first -c 1", ["first"]),
            ("--grep first", ["first"]),
            ("-c 2", ["rest 38", "rest 39"]),
        ):
            found = self.found("AaTopic", "-k", "busy", *words.split())
            self.assertEqual(found, wanted)
        self.assertEqual(len(self.found("AaTopic", "-k", "busy", "-c", "100")), 100)

    def test_queueOfAKey(self) -> None:
        """Only the messages of --queue, with a key, too."""
        self.call("topic", "update", "AaTopic", "-q", "2")
        for number in (0, 1, 0):
            words = ("-k", "key", "--queue", f"broker-a:{number}")
            self.call("message", "send", "AaTopic", f"in {number}", *words)
        words = ("-k", "key", "--queue", "broker-a:1")
        self.assertEqual(self.found("AaTopic", *words), ["in 1"])

    def test_moreInASecond(self) -> None:
        """A broker tells only some of the messages of one second: that is said."""
        for number in range(70):
            self.send("AaTopic", f"{number}", "busy")
        words = ("message", "find", "AaTopic", "-k", "busy", "--grep", "none")
        error = self.call(*words, status=3).stderr
        self.assertIn("more than 64 messages of one second", error)

    def test_exactTimes(self) -> None:
        """Times are those of the messages, to the millisecond."""
        self.cluster.rig.clock.advance(0.7)
        self.send("AaTopic", "early", "early")
        self.cluster.rig.clock.advance(0.7)
        self.send("AaTopic", "late", "late")
        (row,) = self.kind("message", "message", "find", "AaTopic", "-k", "late")
        stored = row["stored"]
        for words, wanted in (
            (("--from", str(stored)), 1),
            (("--until", str(stored)), 1),
            (("--from", str(stored + 1)), 0),
            (("--until", str(stored - 1)), 0),
        ):
            line = ("message", "find", "AaTopic", "-k", "late", *words)
            self.assertEqual(len(self.rows(*line, status=0 if wanted else 3)), wanted)
