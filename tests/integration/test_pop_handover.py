"""Messages that one broker has given out by POP, and the other one gives out again."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterable

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.wire.codes import ResponseCode
from scripts.torture.handover import HandOver
from tests.broker.pop.pops import handles, messages
from tests.heavy import HEAVY
from tests.integration.asker import Asker

TOPIC = "Popped"
QUEUES = 4
GROUP = "popping"

#: How many messages each broker gives out; of two, one is in flight when it stops.
COUNT = 4000 if HEAVY else 400

#: For how long: longer than it takes to stop one broker and start the other one.
INVISIBLE_MS = 120_000 if HEAVY else 45_000

#: So long the broker that goes on has, from its start and from that time, in seconds.
PATIENCE = 90.0


class Member:
    """A member of the group, at the broker that is up."""

    def __init__(self, over: HandOver) -> None:
        self.ask = Asker(over.cluster)

    def pop(self, invisible_ms: int = INVISIBLE_MS) -> dict[bytes, ReceiptHandle]:
        """What one pop gives: bodies, and by what they are acknowledged."""
        ext = {
            "consumerGroup": GROUP,
            "topic": TOPIC,
            "queueId": "-1",
            "maxMsgNums": "32",
            "invisibleTime": str(invisible_ms),
            "pollTime": "0",
            "bornTime": str(int(time.time() * 1000)),
            "initMode": "0",
            "expType": "TAG",
            "exp": "*",
        }
        answer = self.ask(200050, ext)
        if answer.code == ResponseCode.POLLING_TIMEOUT:
            return {}
        assert answer.code == 0, (answer.code, answer.remark)
        # As the official client does: in the body's order, by queue and kind of topic.
        by_place: dict[tuple[str, int], list[ReceiptHandle]] = {}
        for handle in handles(answer):
            by_place.setdefault((handle.kind, handle.queue_id), []).append(handle)
        found = {}
        for message in messages(answer):
            stored = message.properties.get("POP_CK")
            kind = "0" if stored is None else ReceiptHandle.parse(stored).kind
            handle = by_place[kind, message.queue_id].pop(0)
            assert handle.offset == message.queue_offset
            found[message.body] = handle
        return found

    def ack(self, handle: ReceiptHandle) -> None:
        """Acknowledge a message."""
        topic = TOPIC if handle.kind == "0" else f"%RETRY%{GROUP}_{TOPIC}"
        ext = {
            "consumerGroup": GROUP,
            "topic": topic,
            "queueId": str(handle.queue_id),
            "extraInfo": handle.text(),
            "offset": str(handle.offset),
        }
        self.ask.done(200051, ext)


class PopHandOverTests(SynchronousTestCase):
    """From one broker to the other, with messages in flight."""

    def begin(self, version: str) -> None:
        """One directory for both."""
        over = self.over = HandOver(version, flushConsumerOffsetInterval=1000)
        self.addCleanup(over.stop)

    def send(self, name: str) -> set[bytes]:
        """Send messages to the broker that is up."""
        over = self.over
        over.driver()(
            "createTopic", topic=TOPIC, queues=QUEUES, address=over.cluster.address
        )
        bodies = {f"{name} {n}".encode() for n in range(COUNT)}
        with Client(Settings(over.cluster.names, seconds=30.0, attempts=20)) as client:
            sent = Producer(client).send_all(Message(TOPIC, body) for body in bodies)
            self.assertEqual(len(list(sent)), COUNT)
        return bodies

    def give_out(self, name: str) -> set[bytes]:
        """Pop what was sent and acknowledge the half; what is in flight then."""
        sent = self.send(name)
        member = Member(self.over)
        self.addCleanup(member.ask.close)
        found: dict[bytes, ReceiptHandle] = {}
        self.begun_at = time.monotonic()
        end = self.begun_at + 60
        while len(found) < COUNT and time.monotonic() < end:
            found.update(member.pop())
        self.popped_at = time.monotonic()
        self.assertEqual(found.keys(), sent)
        acked = sorted(found)[::2]
        for body in acked:
            member.ack(found[body])
        time.sleep(2.5)  # The offsets are written down.
        return sent - set(acked)

    def look(self, wanted: set[bytes]) -> None:
        """The tools see in the directory what is in flight."""
        self.assertEqual(self.over.total("popped", "in_flight"), len(wanted))
        self.assertEqual(self.over.faults(), "")

    def come_again(self, wanted: set[bytes]) -> None:
        """All that was in flight comes again when its time is over, and nothing else,
        each once."""
        member = Member(self.over)
        self.addCleanup(member.ask.close)
        got: Counter[bytes] = Counter()
        early: Iterable[bytes] = ()
        visible_at = self.begun_at + INVISIBLE_MS / 1000
        end = max(time.monotonic(), self.popped_at + INVISIBLE_MS / 1000) + PATIENCE
        while got.keys() < wanted and time.monotonic() < end:
            found = member.pop(300_000)
            if found and time.monotonic() < visible_at:
                early = found
            got.update(found.keys())
            for handle in found.values():
                member.ack(handle)
            if not found:
                time.sleep(0.2)
        self.assertEqual(list(early), [])
        self.assertEqual(got.keys() - wanted, set())
        self.assertEqual(len(wanted - got.keys()), 0)
        self.assertEqual(set(got.values()), {1})

    def to_java(self, version: str) -> None:
        """Java's broker gives out again what ours has given out."""
        self.begin(version)
        over = self.over
        over.cluster.broker.start()
        wanted = self.give_out("ours")
        over.cluster.broker.stop(signal.SIGTERM)
        self.look(wanted)
        over.start_java()
        self.come_again(wanted)

    def from_java(self, version: str) -> None:
        """Ours gives out again what Java's broker has given out."""
        self.begin(version)
        over = self.over
        over.start_java()
        wanted = self.give_out("java")
        over.java.stop(signal.SIGTERM)
        self.look(wanted)
        over.cluster.broker.start()
        self.come_again(wanted)

    def test_toJava(self) -> None:
        """From ours to 5.3.3."""
        self.to_java("5.3.3")

    def test_fromJava(self) -> None:
        """From 5.3.3 to ours."""
        self.from_java("5.3.3")

    if HEAVY:

        def test_toNewJava(self) -> None:
            """From ours to 5.5.0."""
            self.to_java("5.5.0")

        def test_fromNewJava(self) -> None:
            """From 5.5.0 to ours."""
            self.from_java("5.5.0")
