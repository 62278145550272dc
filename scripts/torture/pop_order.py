"""Rows of pop.py: messages that are popped while members change.

I{In order.} Members pop in order, as a Proxy does for FIFO groups, handle what they got
one after the other, and acknowledge each. Of twenty handlings one fails: the member
gives up the rest of that queue, and either asks for it again soon or lets its time
pass. Meanwhile members leave, with what they have in hand, and others join. No message
may be given out before all that stand before it in its queue are acknowledged, and none
may be lost.

I{By the official client}, in the mode POP, with a listener that wants order. It does
not ask brokers for order, so what it sees is only counted, beside what it sees of the
Java broker; but nothing may be lost.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.headers.pull import PopMessageResponseHeader
from scripts.lab.javaclient import body_of
from scripts.lab.pair import OURS
from scripts.lab.peers import NO_ANSWER, Peer, Target, create_topic
from scripts.lab.pop_load import fill, handles, pop_ext
from scripts.lab.rows import Figure
from scripts.lab.targets import Scale
from scripts.torture.handover import HandOver

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

#: The least that the official client takes, in ms.
LEAST_INVISIBLE_MS: Final = 5000

#: How long official clients may take for the rest, in seconds.
PATIENCE: Final = 120.0

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
                for handle in handles(PopMessageResponseHeader.from_ext(answer.ext)):
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
    count, changes = scale.of(12_800, 384), scale.of(20, 2)
    with scale.ours() as target:
        yield from of(target, count, changes)
    if scale.kit is not None:
        with scale.java(scale.kit) as target:
            for each in of(target, count, changes):
                yield each._replace(name=f"Java: {each.name}", bar=None)


def clients(maker: str, count: int, changes: int) -> Iterator[Figure]:
    """Let official clients consume so many messages while members change."""
    over = HandOver("5.3.3" if maker == OURS else maker)
    try:
        driver = over.driver()
        if maker == OURS:
            over.cluster.broker.start()
        else:
            over.start_java()
        address = over.cluster.address
        driver("createTopic", topic=TOPIC, queues=QUEUES, address=address)
        mode = {"consumerGroup": GROUP, "mode": "POP", "popShareQueueNum": 0}
        peer = Peer(over.cluster.broker.port)
        body = dumps({**mode, "topic": TOPIC})
        peer.done(RequestCode.SET_MESSAGE_REQUEST_MODE, {}, body)
        peer.close()
        yield from seen_by(over, count, changes)
    finally:
        over.stop()


def seen_by(over: HandOver, count: int, changes: int) -> Iterator[Figure]:
    """What official clients see."""
    driver = over.driver()
    numbers = iter(range(1_000_000))

    def joined() -> str:
        name = f"member{next(numbers)}"
        driver(
            "consumer",
            name=name,
            group=GROUP,
            topic=TOPIC,
            pop=True,
            invisibleMs=LEAST_INVISIBLE_MS,
            orderly=True,
            failPart=FAILING,
        )
        everyone.append(name)
        return name

    everyone: list[str] = []
    members = [joined() for _ in range(MEMBERS)]
    sent = set()
    with Client(Settings(over.cluster.names, attempts=20)) as client:
        producer = Producer(client)
        for change in range(changes):
            part = range(count * change // changes, count * (change + 1) // changes)
            bodies = [f"{number}".encode() for number in part]
            for _ in producer.send_all(Message(TOPIC, body) for body in bodies):
                pass
            sent |= set(bodies)
            time.sleep(CHANGE_SECONDS)
            driver("stop", name=members.pop(0))
            members.append(joined())
    end = time.monotonic() + PATIENCE
    handled: list[tuple[int, int, int, bytes]] = []
    while time.monotonic() < end:
        found = [each for name in everyone for each in driver.received(name, 0)]
        done = [each for each in found if not each["failed"]]
        handled = [
            (int(each["at"]), int(each["queue"]), int(each["offset"]), body_of(each))
            for each in done
        ]
        if {body for *_, body in handled} >= sent:
            break
        time.sleep(1)
    seen: set[bytes] = set()
    newest: dict[int, int] = {}
    inversions = again = 0
    for _, queue, offset, body in sorted(handled):
        again += body in seen
        if body not in seen:
            inversions += offset < newest.get(queue, -1)
            newest[queue] = max(offset, newest.get(queue, -1))
        seen.add(body)
    yield Figure("official clients, messages", len(sent), "")
    yield Figure("official clients, lost", len(sent - seen), "", 0, True)
    yield Figure("official clients, failed", len(found) - len(handled), "")
    yield Figure("official clients, handled again", again, "")
    yield Figure("official clients, behind a later one of its queue", inversions, "")


def by_clients(scale: Scale) -> Iterator[Figure | str]:
    """With ours, and with the Java broker if there is a kit."""
    count, changes = scale.of(4000, 200), scale.of(20, 2)
    yield from clients(OURS, count, changes)
    if scale.kit is not None:
        for each in clients("5.3.3", count, changes):
            yield each._replace(name=f"Java: {each.name}", bar=None)
