"""Many messages, each made from its number alone; Corpus.java makes the same.

A message is compared as one line: number, topic, flag, length and CRC of the body,
tags, keys, and three properties, tab separated.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from zlib import crc32

from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.records.properties import DELAY, REAL_TOPIC
from rocketbroker.records.record import StoredMessage

RUN = 16
QUEUES = 4
TOPICS = ("HandoverA", "HandoverB", "HandoverC")
_ALL = (1 << 64) - 1


class Seen(NamedTuple):
    """A message as a consumer has it.

    @ivar level: of its delay, 0 without one.
    @ivar line: what it is.
    """

    queue: int
    offset: int
    unique_key: str
    level: int
    line: str

    @property
    def number(self) -> int:
        """Which message it is."""
        return int(self.line.split("\t", 1)[0])


def mix(n: int) -> int:
    """64 random bits for a number: the output function of SplitMix64."""
    z = (n + 1) * 0x9E3779B97F4A7C15 & _ALL
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _ALL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _ALL
    return z ^ (z >> 31)


@cache
def _text() -> bytes:
    raw = b"".join(mix(n).to_bytes(8, "big") for n in range(1 << 18))
    return raw.translate(bytes(ord("0") + (value & 63) for value in range(256)))


@cache
def _run(number: int) -> tuple[str, int, bool]:
    r = mix(number + (1 << 40))
    return (
        TOPICS[(r & 0xFF) % len(TOPICS)],
        (r >> 8 & 0xFF) % QUEUES,
        r >> 16 & 3 == 0,
    )


def place(n: int) -> tuple[str, int]:
    """The topic and the queue of a message."""
    return _run(n // RUN)[:2]


def level(n: int) -> int:
    """The level of a message's delay, where delays are asked for; 0 without one."""
    z = mix(n)
    if batched(n) or z >> 53 & 31:
        return 0
    return max(1, z >> 58 & 3)


def batched(n: int) -> bool:
    """Whether a message is sent in a batch."""
    return _run(n // RUN)[2]


def keys(n: int) -> list[str]:
    """The keys of a message."""
    return [f"k{n}", f"g{n % 997}", f"\u4e2d{n % 31}"][: mix(n) >> 43 & 3]


@cache
def line(n: int) -> str:
    """What a message is."""
    z = mix(n)
    topic, in_batch = place(n)[0], batched(n)
    if not in_batch and n % 10000 == 9999:
        size = 1 << 20
    else:
        kind = z & 15
        mask = 0x1FF if kind < 12 else 0xFFF if kind < 15 or in_batch else 0x1FFF
        size = 1 + (z >> 4 & mask)
    text = _text()
    # Java shifts without the sign: the rest is never negative there either.
    at = (z >> 20) % (len(text) - size)
    tags = f"tag{z >> 40 & 7}" if z >> 40 & 7 else ""
    count = z >> 45 & 3
    own = [f"{z:x}", f"\u00e9\u4e2d\U0001f680{n}", "x" * (1 + (z >> 47 & 63))]
    own = own[:count] + [""] * (3 - count)
    crc = crc32(text[at : at + size])
    first = (n, topic, z & 0x7FFFFFFF, size, crc, tags, " ".join(keys(n)))
    return "\t".join((*map(str, first), *own))


def seen(message: StoredMessage) -> Seen:
    """A message of ours as it is compared; one that waits, as what it will be."""
    own = message.properties
    body = message.plain_body()
    topic = own[REAL_TOPIC] if message.topic == SCHEDULE_TOPIC else message.topic
    first = (topic, message.flag, len(body), crc32(body))
    some = [own.get(name, "") for name in ("TAGS", "KEYS", "p0", "p1", "p2")]
    return Seen(
        message.queue_id,
        message.queue_offset,
        message.message_id,
        int(own.get(DELAY, "0")),
        "\t".join((own.get("n", ""), *map(str, first), *some)),
    )


def noted(text: str) -> Iterator[Seen]:
    """The messages of a file that Java has written."""
    for found in text.split("\n")[:-1]:
        queue, offset, key, delay, rest = found.split("\t", 4)
        yield Seen(int(queue), int(offset), key, int(delay), rest)
