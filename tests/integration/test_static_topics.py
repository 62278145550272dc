"""Static topics: mqadmin moves their queues between brokers of ours and a Java one,
while the official client sends, and both clients consume."""

from __future__ import annotations

import base64
import json
import shutil
import signal
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.javaclient import JavaClient, JavaError
from scripts.lab.pair import OURS, Member
from scripts.lab.servers import Server, free_base
from tests.integration.javacase import until
from tests.integration.ours import Ours

QUEUES: Final = 4

#: How many messages are sent between two moves.
COUNT: Final = 20

#: How often clients ask where the topic is.
POLL_MS: Final = 500

#: How long clients may take to learn where a queue is, and to get what was sent, in
#: seconds.
MAX_SECONDS: Final = 120.0

TOPIC: Final = "S"


class StaticTopicTests(SynchronousTestCase):
    """Brokers a and b of ours, and c of RocketMQ's, in one cluster."""

    def setUp(self) -> None:
        """All are known to a name server of ours."""
        self.folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
        base = free_base()
        self.names = f"127.0.0.1:{base}"
        settings: dict[str, object] = {
            "listenPort": base,
            "kvConfigPath": self.folder / "kvConfig.json",
        }
        self.namesrv = Server("namesrv", settings, self.folder, base)
        self.namesrv.start()
        self.brokers = {
            letter: Member(
                maker,
                0,
                self.folder / letter,
                namesrvAddr=self.names,
                brokerName=f"broker-{letter}",
                # Java lets a pull wait in a queue that has moved, until its time is
                # over: this says when that is.
                longPollingEnable="false",
                shortPollingTimeMills=1000,
            )
            for letter, maker in (("a", OURS), ("b", OURS), ("c", "5.3.3"))
        }
        self.addCleanup(self.end)
        with ThreadPoolExecutor() as threads:
            list(threads.map(Member.start, self.brokers.values()))
        self.java = JavaClient("5.3.3", self.names, self.folder)
        self.addCleanup(self.java.stop)
        self.java("announce", address=self.brokers["c"].address)
        self.sent: dict[str, tuple[int, int]] = {}

    def end(self) -> None:
        """Leave nothing running, and no files."""
        for broker in self.brokers.values():
            broker.stop(signal.SIGKILL)
        self.namesrv.stop(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def mqadmin(self, *words: str) -> str:
        """Carry out a command; what it prints."""
        line = [*words, "-n", self.names]
        answer = self.java("mqadmin", words=line, timeoutMs=120000)
        self.assertTrue(answer["ended"], words)
        text = f"{answer['printed']}\n{answer['complaints']}"
        self.assertIn("mapping data is written to file", text)
        self.assertNotIn("Exception", text)
        return text

    def send(self, stage: str) -> None:
        """Send messages, some to each queue; what is refused while the client does not
        know yet where a queue is is sent again."""
        for number in range(COUNT):
            body = f"{stage}-{number}"
            end = time.monotonic() + MAX_SECONDS
            while True:
                try:
                    answer = self.java.send("P", TOPIC, body.encode())
                    break
                except JavaError as error:
                    if time.monotonic() > end:
                        raise
                    self.assertIn(error.code, (501, 0), error)
                    time.sleep(0.1)
            self.assertEqual(answer["status"], "SEND_OK")
            self.sent[body] = answer["queue"], answer["offset"]

    def check_received(self) -> None:
        """The consumer has all messages, each once, in the order of their offsets."""
        found: list[Any] = self.java.received("C", len(self.sent), MAX_SECONDS)
        bodies = [base64.b64decode(each["body"]).decode() for each in found]
        self.assertEqual(sorted(bodies), sorted(self.sent))
        for body, each in zip(bodies, found, strict=True):
            self.assertEqual(self.sent[body][1], each["offset"], body)
        until(lambda: len(self.ours.found) >= len(self.sent), MAX_SECONDS)
        places = [(m.text, m.queue.queue_id, m.offset) for m in self.ours.found]
        sent = [(body, *place) for body, place in self.sent.items()]
        self.assertEqual(sorted(places), sorted(sent))

    def leaders(self) -> dict[str, int]:
        """How many queues each broker leads, as the name server knows."""
        route = self.java("operator", question="route", topic=TOPIC)
        infos = route["topicQueueMappingByBroker"]
        return {
            name.removeprefix("broker-"): len(info["currIdMap"])
            for name, info in infos.items()
            if info["currIdMap"]
        }

    def mapping(self, letter: str) -> dict[str, Any]:
        """The file of a broker."""
        path = self.brokers[letter].store / "config" / "topicQueueMapping.json"
        text = path.read_text()
        for number in range(QUEUES):
            for before in "{,":
                text = text.replace(f"{before}{number}:", f'{before}"{number}":')
        value: dict[str, Any] = json.loads(text)
        return value

    def move(self, letter: str) -> None:
        """Move all queues to one broker."""
        self.mqadmin("remappingStaticTopic", "-t", TOPIC, "-b", f"broker-{letter}")
        self.assertTrue(until(lambda: self.leaders() == {letter: QUEUES}, MAX_SECONDS))

    def test_moves(self) -> None:
        """A topic over two of our brokers moves to one of them, to the Java broker, and
        back; clients that stay get each message once, at its offset."""
        both = "broker-a,broker-b"
        self.mqadmin("updateStaticTopic", "-t", TOPIC, "-qn", str(QUEUES), "-b", both)
        self.assertTrue(until(lambda: self.leaders() == {"a": 2, "b": 2}, MAX_SECONDS))
        # What is late is not sent again: it would be there twice.
        words = {"pollMs": POLL_MS, "retries": 0, "sendMs": int(MAX_SECONDS * 1000)}
        self.java("producer", name="P", group="P", **words)
        self.java("consumer", name="C", group="C", topic=TOPIC, pollMs=POLL_MS)
        self.ours = Ours(self.names, TOPIC, "O")
        self.addCleanup(self.ours.stop)
        self.send("first")
        self.check_received()
        for letter in "bca":
            self.move(letter)
            self.send(f"at {letter}")
            self.check_received()
        offsets = defaultdict(list)
        for queue, offset in self.sent.values():
            offsets[queue].append(offset)
        self.assertEqual(len(offsets), QUEUES)
        for each in offsets.values():
            self.assertEqual(each, sorted(set(each)))
            self.assertGreater(each[-1], 20000)
        self.check_files()

    def check_files(self) -> None:
        """What brokers keep of the topic has the same members, in the same order."""
        java, ours = (self.mapping(letter) for letter in "ca")
        shapes = [shape(value) for value in (java, ours)]
        self.assertEqual(*shapes)


def shape(value: object) -> object:
    """The names of members, in order, and the kinds of what they hold; of arrays the
    first."""
    if isinstance(value, dict):
        members = [(name, shape(each)) for name, each in value.items()]
        return members[:1] if members and members[0][0].isdecimal() else members
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return type(value).__name__
