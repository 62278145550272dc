"""Row of scripts/pop.py: messages that are popped in order.

Members pop in order, as a Proxy does for FIFO groups, handle what they got one after
the other, and acknowledge each. Of twenty handlings one fails: the member gives up the
rest of that queue, and either asks for it again soon or lets its time pass. Meanwhile
members leave, with what they have in hand, and others join. No message may be given out
before all that stand before it in its queue are acknowledged, and none may be lost.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.wire.codes import RequestCode, ResponseCode
from scripts.pop_load import fill, pop_ext
from scripts.scale_load import NO_ANSWER, Figure, Peer, Scale, Target, create_topic
from tests.broker.pop.pops import handles

TOPIC: Final = "Ordered"
QUEUES: Final = 8
GROUP: Final = "orderly"
BODY: Final = b"x" * 128

MEMBERS: Final = 5

#: How long messages are invisible, and those that failed and are wanted soon, in ms.
INVISIBLE_MS: Final = 2000
SOON_MS: Final = 300

#: The part of handlings that fail, and how long each takes, in seconds.
FAILING: Final = 0.05
HANDLING: Final = 0.002

#: One joins and one leaves so often, in seconds.
CHANGE_SECONDS: Final = 0.7

#: How long nothing more may come until that is all, in seconds.
SILENCE: Final = 20.0


class Queue:
    """What became of the messages of a queue.

    @ivar next: the first that is not acknowledged.
    """

    def __init__(self) -> None:
        self.next = 0


class Ledger:
    """What all members have seen.

    @ivar counts: of what happened.
    @ivar moved: when the last one was acknowledged for the first time.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.moved = time.monotonic()
        self._queues = [Queue() for _ in range(QUEUES)]
        self._lock = threading.Lock()

    def given(self, queue: int, offset: int) -> None:
        """The first message that a pop has given of a queue."""
        with self._lock:
            self.counts["given"] += 1
            self.counts["given too early"] += offset > self._queues[queue].next

    def handled(self, queue: int, offset: int) -> None:
        """A message was handled, and is about to be acknowledged."""
        with self._lock:
            found = self._queues[queue]
            self.counts["handled"] += 1
            self.counts["out of order"] += offset > found.next
            self.counts["handled again"] += offset < found.next
            if offset == found.next:
                found.next += 1
                self.moved = time.monotonic()

    def left(self, count: int) -> int:
        """How many are not handled of so many."""
        return count - sum(queue.next for queue in self._queues)


class Member:
    """One member, in a thread."""

    def __init__(self, port: int, ledger: Ledger, number: int) -> None:
        self.leaves = False
        self._port = port
        self._ledger = ledger
        self._dice = random.Random(number)
        self._number = number
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Leave, in the middle of what it does."""
        self.leaves = True

    def join(self) -> None:
        """Wait until it has left."""
        self._thread.join()

    def _run(self) -> None:
        peer = Peer(self._port, 30)
        attempt = 0
        try:
            while not self.leaves:
                attempt += 1
                ext = pop_ext(TOPIC, GROUP, INVISIBLE_MS, 16)
                ext |= {"order": "true", "attemptId": f"{self._number}-{attempt}"}
                answer = peer.ask(RequestCode.POP_MESSAGE, ext)
                if answer.code != ResponseCode.SUCCESS:
                    time.sleep(0.02)
                    continue
                by_queue: dict[int, list[ReceiptHandle]] = {}
                for handle in handles(answer):
                    by_queue.setdefault(handle.queue_id, []).append(handle)
                for queue, several in by_queue.items():
                    assert several[0].offset is not None
                    self._ledger.given(queue, several[0].offset)
                for several in by_queue.values():
                    self._handle(peer, several)
        except NO_ANSWER as error:
            self._ledger.counts[f"answers missing: {error}"] += 1
        finally:
            peer.close()

    def _handle(self, peer: Peer, several: list[ReceiptHandle]) -> None:
        """Handle the messages of a queue until one fails."""
        for handle in several:
            time.sleep(HANDLING)
            if self.leaves:
                return
            ext = {
                "consumerGroup": GROUP,
                "topic": TOPIC,
                "queueId": str(handle.queue_id),
                "extraInfo": handle.text(),
                "offset": str(handle.offset),
            }
            if self._dice.random() < FAILING:
                self._ledger.counts["failed"] += 1
                if self._dice.random() < 0.5:
                    ext["invisibleTime"] = str(SOON_MS)
                    peer.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, ext)
                return
            assert handle.offset is not None
            self._ledger.handled(handle.queue_id, handle.offset)
            answer = peer.ask(RequestCode.ACK_MESSAGE, ext)
            if answer.code != ResponseCode.SUCCESS:
                self._ledger.counts["acknowledgements refused"] += 1
                return


def of(target: Target, count: int, changes: int) -> Iterator[Figure]:
    """Consume so many messages while members change."""
    create_topic(target.port, TOPIC, QUEUES)
    fill(target.port, TOPIC, QUEUES, count, BODY)
    ledger = Ledger()
    numbers = iter(range(1_000_000))
    members = [Member(target.port, ledger, next(numbers)) for _ in range(MEMBERS)]
    changed, at = 0, time.monotonic()
    everyone = members.copy()
    while ledger.left(count) and time.monotonic() - ledger.moved < SILENCE:
        time.sleep(0.02)
        if changed < changes and time.monotonic() - at > CHANGE_SECONDS:
            changed, at = changed + 1, time.monotonic()
            members.pop(0).leave()
            members.append(Member(target.port, ledger, next(numbers)))
            everyone.append(members[-1])
    for member in members:
        member.leave()
    for member in everyone:
        member.join()
    yield Figure("joins and leaves", changed, "", changes, True, least=True)
    yield Figure("messages", count, "")
    yield Figure("lost", ledger.left(count), "", 0, True)
    for name in ("out of order", "given too early"):
        yield Figure(name, ledger.counts.pop(name, 0), "", 0, True)
    for name, number in sorted(ledger.counts.items()):
        yield Figure(name, number, "")


def order(scale: Scale) -> Iterator[Figure | str]:
    """Consume with ours, and with the Java broker if there is a kit."""
    count, changes = scale.of(12_800, 1280), scale.of(20, 2)
    with scale.ours() as target:
        yield from of(target, count, changes)
    if scale.kit is not None:
        with scale.java(scale.kit) as target:
            for each in of(target, count, changes):
                yield each._replace(name=f"Java: {each.name}", bar=None)
