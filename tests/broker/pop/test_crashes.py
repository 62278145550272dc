"""Brokers that die at any point while messages are popped."""

from __future__ import annotations

import random

from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.wire.codes import RequestCode
from tests.broker.pop.pops import PopCase, bodies, handles, messages
from tests.broker.rig import Rig

CHANGE = RequestCode.CHANGE_MESSAGE_INVISIBLETIME

#: How many lives a broker has, and what is done in each.
LIVES = 4
STEPS = 25


class CrashTests(PopCase):
    """Messages are popped, acknowledged, put off; and the broker dies."""

    def begin(self, seed: int, **settings: str) -> None:
        """A broker, and what is known of its messages."""
        self.luck = random.Random(seed)
        self.settings = settings
        self.rig = self.make(queues=2, **settings)
        self.sent: set[bytes] = set()
        self.acked: set[bytes] = set()
        self.late: set[bytes] = set()
        self.again = 0
        self.number = 0
        self.out: list[tuple[bytes, ReceiptHandle, str]] = []

    def step(self) -> None:
        """Do something."""
        what = self.luck.random()
        if what < 0.25:
            self.number += 1
            body = f"{self.number}"
            self.send(body, queue_id=self.luck.randrange(2))
            self.sent.add(body.encode())
        elif what < 0.5:
            self.take(self.luck.randrange(1, 5), self.luck.randrange(4_000, 15_000))
        elif what < 0.75 and self.out:
            self.acknowledge(self.luck.randrange(len(self.out)))
        elif what < 0.8 and self.out:
            self.put_off(self.luck.randrange(len(self.out)))
        else:
            self.pass_by(self.luck.random() * 3)

    def take(self, most: int, invisible_ms: int) -> int:
        """Pop; how many came."""
        answer = self.pop(maxMsgNums=most, invisibleTime=invisible_ms)
        if not answer.body:
            return 0
        # As a client does: by queue and kind of topic, in the body's order.
        places: dict[tuple[str, int], list[ReceiptHandle]] = {}
        for handle in handles(answer):
            places.setdefault((handle.kind, handle.queue_id), []).append(handle)
        for message in messages(answer):
            stored = message.properties.get("POP_CK")
            kind = "0" if stored is None else ReceiptHandle.parse(stored).kind
            handle = places[kind, message.queue_id].pop(0)
            self.assertEqual(handle.offset, message.queue_offset)
            topic = "T" if kind == "0" else "%RETRY%G_T"
            self.out.append((message.body, handle, topic))
            self.again += message.body in self.acked
        return len(bodies(answer))

    def acknowledge(self, at: int) -> None:
        """Acknowledge one of those that are out; it may be late."""
        body, handle, topic = self.out.pop(at)
        is_late = self.rig.wall_ms() >= handle.pop_ms + handle.invisible_ms
        self.assertEqual(self.ack(handle, topic).code, 0)
        (self.late if is_late else self.acked).add(body)

    def put_off(self, at: int) -> None:
        """Change when one comes again."""
        _, handle, topic = self.out.pop(at)
        ext = {
            "consumerGroup": "G",
            "topic": topic,
            "queueId": str(handle.queue_id),
            "extraInfo": handle.text(),
            "offset": str(handle.offset),
            "invisibleTime": "6000",
        }
        self.assertEqual(self.rig.ask(CHANGE, ext).code, 0)

    def die(self, power: bool) -> None:
        """The process is killed, or the machine stops; another broker begins.

        What the log has lost with the machine was not acknowledged to anybody who had
        to rely on it: it is not expected any more.
        """
        before = self.rig
        luck = self.luck if power else None
        disk = before.disk.image(luck, keep_all=not power)
        before.close()
        self.rig = Rig(
            self.settings,
            disk=disk,
            start_ms=before.wall_ms() + self.luck.randrange(99),
        )
        self.addCleanup(self.rig.close)
        self.rig.topic("T", 2)
        self.rig.broker.start()
        if power:
            left = {each.body for n in (0, 1) for each in self.rig.records(n)}
            self.sent &= left
            self.out = [each for each in self.out if each[0] in left]

    def finish(self) -> None:
        """Consume all that is left; nothing is missing then."""
        self.out.clear()
        # A late acknowledgement may still count.
        seen = self.acked | self.late
        quiet = 0
        while quiet < 4:
            count = self.take(32, 60_000)
            seen.update(body for body, _, _ in self.out)
            while self.out:
                self.acknowledge(0)
            quiet = 0 if count else quiet + 1
            if not count:
                self.pass_by(6)
        self.assertEqual(self.sent - seen, set())

    def run_lives(self, seed: int, power: bool, **settings: str) -> int:
        """Several lives; how often a message came that was acknowledged in time."""
        self.begin(seed, **settings)
        for _ in range(LIVES):
            for _ in range(STEPS):
                self.step()
            self.die(power)
        self.finish()
        return self.again

    def test_killed(self) -> None:
        """Whenever a process is killed, each message is consumed, or comes again.

        One that was acknowledged comes again only if its group's offset, or that of
        the revive queue, was not written down: of the last five seconds.
        """
        for seed in range(6):
            self.run_lives(seed, False)

    def test_killedWithBuffer(self) -> None:
        """The same with check points in memory."""
        for seed in range(100, 104):
            self.run_lives(seed, False, enablePopBufferMerge="true")

    def test_powerFailure(self) -> None:
        """Whenever the machine stops, each message that is in the log comes."""
        for seed in range(200, 206):
            self.run_lives(seed, True)
