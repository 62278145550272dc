"""Row of pop.py: kill -9 of a broker whose messages are popped.

Members of a group send messages and timers, take timers back, pop, acknowledge one by
one and in batches, change invisible times, and leave messages alone, while their broker
is killed and started again and again. Then they acknowledge all that comes until
nothing does, and what they have seen is held against what the store has
(C{pop_verdict.py}).
"""

from __future__ import annotations

import random
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import TopicNotExist
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.records.record import StoredMessage, decode_all
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.headers.pull import (
    ChangeInvisibleTimeResponseHeader,
    PopMessageResponseHeader,
)
from scripts.lab.javabroker import JavaBroker
from scripts.lab.pair import OURS
from scripts.lab.peers import NO_ANSWER, Beside, Peer, Stopped, send_ext, wait_for
from scripts.lab.pop_load import handles, pop_ext
from scripts.lab.rows import Figure
from scripts.lab.servers import Server
from scripts.torture.handover import HandOver
from scripts.torture.harness import EXAMPLES, Life, Words, kills, now_ms
from scripts.torture.pop_verdict import (
    GROUP,
    LATE_TIMER,
    QUEUES,
    TOPIC,
    VISIBLE_AGAIN,
    Got,
    Notes,
    Part,
    Verdict,
)

#: So many kills befall one store.
KILLS: Final = 30

#: How long a broker is up before it is killed, in seconds.
LEAST_SECONDS: Final = 0.3
MOST_SECONDS: Final = 3.0

#: One in so many lives is so much longer: offsets are written down for the first time
#: after ten seconds, by both brokers.
LONG_LIFE: Final = 10
LONG_SECONDS: Final = 10.5

#: How many members there are, and how long each rests after a round of its requests.
MEMBERS: Final = 3
REST_SECONDS: Final = 0.01

INVISIBLE_MS: Final = 2000, 3000, 4000

#: In the end nothing must come for so long, in seconds: more than what the longest
#: invisible time and reviving take together.
SILENCE: Final = {True: 12.0, False: 30.0}

#: Small files and times; the same for both brokers.
SETTINGS: Final[dict[str, object]] = {
    "recallMessageEnable": "true",
    "flushConsumerOffsetInterval": 1000,
    "mappedFileSizeCommitLog": 16 << 20,
    "mappedFileSizeTimerLog": 5200 * 10 + 30,
    "popPollingMapSize": 1000,
}


#: How late a timer may be of a broker that is up for long enough, and a message that
#: is given out again, in ms: it waits two seconds for acknowledgements, and is looked
#: for once a second.
BARS: Final = {LATE_TIMER: 2000, VISIBLE_AGAIN: 6000}


class Timer(NamedTuple):
    """A message that may be taken back."""

    body: bytes
    handle: str
    deliver_ms: int


class Told(Beside):
    """A process beside that is told to end before it is waited for."""

    def tell(self) -> None:
        """Tell it to end."""
        self._pipe.send(None)


class Member:
    """One member: it sends, pops and acknowledges, one request after the other.

    @ivar notes: what it has done and seen.
    """

    def __init__(self, port: int, number: int, seed: int) -> None:
        self.notes = Notes()
        self._port = port
        self._number = number
        self._serial = 0
        self._dice = random.Random(seed * 100 + number)
        self._peer: Peer | None = None
        self._timers: list[Timer] = []
        self._later: list[tuple[float, ReceiptHandle]] = []

    def ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        """The answer to a request.

        @raise OSError: there is none.
        """
        if self._peer is None:
            self._peer = Peer(self._port, 20)
        return self._peer.ask(code, ext, body)

    def work(self, silence: float, stopped: Stopped) -> Notes:
        """Do it all until somebody stops it; then only take what comes, until nothing
        does for so many seconds."""
        seen = time.monotonic()
        while True:
            ends = stopped()
            try:
                if ends:
                    seen = time.monotonic() if self._drain() else seen
                    if time.monotonic() - seen > silence:
                        return self.notes
                else:
                    seen = time.monotonic()
                    self._one()
            except NO_ANSWER:
                if self._peer is not None:
                    self._peer.close()
                    self._peer = None
                time.sleep(0.02)
            time.sleep(0.1 if ends else REST_SECONDS)

    def _one(self) -> None:
        """Do something."""
        luck = self._dice.random()
        self._acknowledge_late()
        if luck < 0.35:
            self._send()
        elif luck < 0.5:
            self._send(now_ms() + self._dice.randrange(1000, 5000))
        elif luck < 0.57:
            self._recall()
        else:
            self._dispose()

    def _send(self, deliver_ms: int = 0) -> None:
        self._serial += 1
        key = f"{self._number:08X}{self._serial:024X}"
        body = key.encode()
        own = f"UNIQ_KEY\x01{key}\x02TAGS\x01t\x02"
        if deliver_ms:
            own += f"TIMER_DELIVER_MS\x01{deliver_ms}\x02"
        ext = {**send_ext(TOPIC, self._dice.randrange(QUEUES)), "i": own}
        answer = self.ask(RequestCode.SEND_MESSAGE_V2, ext, body)
        if answer.code != ResponseCode.SUCCESS:
            self.notes.refused += 1
            return
        self.notes.sent[body] = deliver_ms
        handle = (answer.ext or {}).get("recallHandle")
        if deliver_ms and handle:
            self._timers.append(Timer(body, handle, deliver_ms))

    def _recall(self) -> None:
        """Take a timer back, in good time or in the last moment."""
        if not self._timers:
            return
        timer = self._timers.pop(self._dice.randrange(len(self._timers)))
        self._timers = [each for each in self._timers if each.deliver_ms > now_ms()]
        if timer.deliver_ms <= now_ms():
            return
        self.notes.maybe_recalled.add(timer.body)
        ext = {"producerGroup": "P", "topic": TOPIC, "recallHandle": timer.handle}
        answer = self.ask(RequestCode.RECALL_MESSAGE, ext)
        if answer.code == ResponseCode.SUCCESS:
            self.notes.recalled[timer.body] = now_ms()

    def _pop(self, invisible_ms: int) -> list[tuple[ReceiptHandle, StoredMessage]]:
        answer = self.ask(
            RequestCode.POP_MESSAGE, pop_ext(TOPIC, GROUP, invisible_ms, 8)
        )
        if answer.code != ResponseCode.SUCCESS:
            return []
        # As the official client does: in the body's order, by queue and kind of topic.
        by_place: dict[tuple[str, int], list[ReceiptHandle]] = {}
        for handle in handles(PopMessageResponseHeader.from_ext(answer.ext)):
            by_place.setdefault((handle.kind, handle.queue_id), []).append(handle)
        found = []
        for message in decode_all(answer.body):
            stored = message.properties.get("POP_CK")
            kind = "0" if stored is None else ReceiptHandle.parse(stored).kind
            handle = by_place[kind, message.queue_id].pop(0)
            found.append((handle, message))
            self.notes.got.append(Got(message.body, Part.of(handle), now_ms()))
        return found

    def _dispose(self) -> None:
        """Pop some, and do this and that with them."""
        dice = self._dice
        batch = []
        for handle, _ in self._pop(dice.choice(INVISIBLE_MS)):
            luck = dice.random()
            if luck < 0.3:
                batch.append(handle)
            elif luck < 0.6:
                self._ack(handle)
            elif luck < 0.7:
                self._ack_later(handle)
            elif luck < 0.85:
                self._change(handle)
        self._ack_batch(batch)

    def _drain(self) -> bool:
        """Take and acknowledge what comes; whether something did."""
        popped = self._pop(30_000)
        self._ack_batch([handle for handle, _ in popped])
        return bool(popped)

    def _ack_later(self, handle: ReceiptHandle) -> None:
        part = self._dice.uniform(0.3, 0.9)
        at = time.monotonic() + handle.invisible_ms / 1000 * part
        self._later.append((at, handle))

    def _acknowledge_late(self) -> None:
        now = time.monotonic()
        due = [handle for at, handle in self._later if at <= now]
        self._later = [each for each in self._later if each[0] > now]
        for handle in due:
            self._ack(handle)

    def _ext(self, handle: ReceiptHandle) -> dict[str, str]:
        return {
            "consumerGroup": GROUP,
            "topic": Part.of(handle).topic,
            "queueId": str(handle.queue_id),
            "extraInfo": handle.text(),
            "offset": str(handle.offset),
        }

    def _ack(self, handle: ReceiptHandle) -> None:
        answer = self.ask(RequestCode.ACK_MESSAGE, self._ext(handle))
        if answer.code == ResponseCode.SUCCESS:
            self.notes.acked[Part.of(handle)] = now_ms()

    def _ack_batch(self, batch: list[ReceiptHandle]) -> None:
        acks = []
        for handle in batch:
            assert handle.offset is not None
            bit = handle.offset - handle.start_offset
            bits = (1 << bit).to_bytes(bit // 8 + 1, "little")
            acks.append(
                {
                    "b": b64encode(bits).decode(),
                    "c": GROUP,
                    "it": handle.invisible_ms,
                    "pt": handle.pop_ms,
                    "q": handle.queue_id,
                    "r": handle.kind,
                    "rq": handle.revive_queue,
                    "so": handle.start_offset,
                    "t": TOPIC,
                }
            )
        if not acks:
            return
        body = dumps({"acks": acks, "brokerName": "broker-a"})
        answer = self.ask(RequestCode.BATCH_ACK_MESSAGE, {}, body)
        if answer.code == ResponseCode.SUCCESS:
            self.notes.acked |= {Part.of(handle): now_ms() for handle in batch}

    def _change(self, handle: ReceiptHandle) -> None:
        """Change an invisible time; of two one is acknowledged later."""
        ms = self._dice.choice((1000, 2000, 3000))
        ext = {**self._ext(handle), "invisibleTime": str(ms)}
        answer = self.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, ext)
        if answer.code != ResponseCode.SUCCESS:
            return
        self.notes.acked[Part.of(handle)] = now_ms()
        self.notes.changed += 1
        header = ChangeInvisibleTimeResponseHeader.from_ext(answer.ext)
        assert handle.offset is not None
        if self._dice.random() < 0.5:
            self._ack_later(
                ReceiptHandle(
                    handle.offset,
                    header.pop_time,
                    header.invisible_time,
                    header.revive_qid,
                    handle.kind,
                    handle.broker_name,
                    handle.queue_id,
                    handle.offset,
                )
            )


def is_made(names: str) -> bool:
    """Make the topic; whether the broker has told the name server of itself."""
    with Client(Settings(names, attempts=20)) as client:
        try:
            client.create_topic(TOPIC, queues=QUEUES)
        except TopicNotExist:
            return False
    return True


def pause(dice: random.Random, number: int) -> float:
    """How long a broker is up before a kill."""
    more = LONG_SECONDS if number % LONG_LIFE == LONG_LIFE // 2 else 0.0
    return dice.uniform(LEAST_SECONDS, MOST_SECONDS) + more


class Series(NamedTuple):
    """What kills of the brokers of one store are to be.

    @ivar maker: of the broker.
    @ivar numbers: of the kills.
    @ivar merges: whether check points wait in memory for acknowledgements.
    @ivar folder: where the store stays, if it does.
    """

    maker: str
    numbers: Iterable[int]
    seed: int
    merges: bool
    workers: int
    folder: Path | None

    def play(self) -> tuple[int, Verdict]:
        """Kill; how often that was, and what became of all messages."""
        is_ours = self.maker == OURS
        settings = {
            **SETTINGS,
            "enablePopBufferMerge": "true" if self.merges else "false",
            "workers": self.workers,
        }
        over = HandOver("5.3.3" if is_ours else self.maker, self.folder, **settings)
        broker = over.cluster.broker if is_ours else over.java
        try:
            broker.start()
            if not wait_for(partial(is_made, over.cluster.names)):
                raise RuntimeError("the name server knows no broker")
            notes, lives = self._kill(broker, over.cluster.broker.port)
            broker.stop()
            return len(lives) - 1, Verdict(over.cluster.store, notes, lives)
        finally:
            over.stop()

    def _kill(self, broker: Server | JavaBroker, port: int) -> tuple[Notes, list[Life]]:
        """Kill it beside its members; what they have noted, and all its lives."""
        members = [Member(port, number, self.seed) for number in range(MEMBERS)]
        silence = SILENCE[self.maker == OURS]
        works = [Told(partial(each.work, silence)) for each in members]
        try:
            dice = random.Random(self.seed)
            lives = [*kills(broker, self.numbers, dice, partial(pause, dice))]
            up_ms = now_ms()
            time.sleep(1)
            for each in works:
                each.tell()
            notes = Notes()
            for each in works:
                notes.add(each.end())
            return notes, [*lives, Life(up_ms, now_ms())]
        finally:
            for each in works:
                each.__exit__()


def rows(maker: str, numbers: Iterator[int], words: Words) -> Iterator[Figure | str]:
    """Kill the brokers of one store after the other."""
    whole: dict[str, int] = {}
    faults = done = 0
    is_ours = maker == OURS
    for first in numbers:
        # Every other store: check points are in the log at once.
        merges = done // KILLS % 2 == 1
        several = chain([first], islice(numbers, KILLS - 1))
        begin = time.monotonic()
        folder = words.kept(f"{maker}-{done}")
        seed = words.seed + done
        series = Series(maker, several, seed, merges, words.workers, folder)
        count, verdict = series.play()
        done += count
        seconds = time.monotonic() - begin
        yield f"{done} kills; the last {count} took {seconds:.0f} s: {verdict}"
        for fault in verdict.faults[:EXAMPLES]:
            yield f"  {'WRONG' if is_ours else 'not judged'}: {fault}"
        faults += len(verdict.faults)
        for name, number in verdict.counts.items():
            is_most = name.startswith("longest")
            before = whole.get(name, 0)
            whole[name] = max(before, number) if is_most else before + number
    prefix = "" if is_ours else "Java: "
    for name, number in whole.items():
        unit = "ms" if name.startswith("longest") else ""
        bar = BARS.get(name) if is_ours else None
        yield Figure(prefix + name, number, unit, bar)
    yield Figure(f"{prefix}kills", done, "")
    yield Figure(f"{prefix}faults", faults, "", 0 if is_ours else None, True)
