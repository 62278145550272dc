"""Reads for some messages only."""

from __future__ import annotations

import re
from random import Random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.properties import find
from rocketbroker.records.record import decode_all
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import PUT_OK
from rocketbroker.store.message_store import Store
from rocketbroker.store.reading import property_filter as looks
from rocketbroker.store.reading.checked_read import LARGE
from rocketbroker.store.reads import (
    FOUND,
    NO_MATCHED_MESSAGE,
    MessageFilter,
    ReadResult,
)
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    BORN_HOST,
    BORN_HOST_V6,
    ROOT,
    START_MS,
    Wall,
    batch,
    draft,
    opened,
    with_batches,
)

MANY = 1 << 30


def colour_is(colour: bytes) -> MessageFilter:
    """Messages of that colour."""
    return MessageFilter(None, lambda properties: find(properties, b"colour") == colour)


def bodies(result: ReadResult) -> list[bytes]:
    """The bodies of what was read."""
    return [stored.body for stored in decode_all(b"".join(result.records))]


class WantedCase(SynchronousTestCase):
    """A queue whose messages have colours."""

    def setUp(self) -> None:
        """It is empty."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.open()

    def open(self, **changes: object) -> None:
        """Open the store."""
        self.store: Store = opened(self.disk, self.wall, **changes)
        self.queue = self.store.queue("T", 0)

    def put(self, *colours: str, body: bytes = b"", **changes: object) -> None:
        """A message of each colour, whose body begins with it."""
        for colour in colours:
            changes.setdefault("properties", b"colour\x01%b\x02" % colour.encode())
            content = colour.encode() + body
            each = draft(self.queue, content, **changes)  # type: ignore[arg-type]
            self.store.append([each])
            self.assertEqual(each.status, PUT_OK)
            self.store.dispatch(100)
            if len(colours) > 1:
                del changes["properties"]

    def read(
        self, wanted: MessageFilter, offset: int = 0, messages: int = 32
    ) -> ReadResult:
        """Read what is wanted."""
        return self.store.read(self.queue, offset, messages, MANY, wanted)

    def look(self, wanted: MessageFilter, offset: int = 0, most: int = 100) -> bool:
        """Look for what is wanted."""
        return self.store.has_wanted(self.queue, offset, most, wanted)[0]


class PropertyTests(WantedCase):
    """By properties."""

    def test_wanted(self) -> None:
        """Only what is wanted is given; the next offset is behind what was passed."""
        self.put("red", "blue", "red", "green")
        result = self.read(colour_is(b"red"))
        self.assertEqual((result.status, result.count), (FOUND, 2))
        self.assertEqual(bodies(result), [b"red", b"red"])
        self.assertEqual(result.next_offset, 4)
        self.assertEqual(result.size, len(b"".join(result.records)))

    def test_none(self) -> None:
        """If nothing is, the reader goes on behind it."""
        self.put("red", "blue")
        result = self.read(colour_is(b"green"))
        self.assertEqual((result.status, result.next_offset), (NO_MATCHED_MESSAGE, 2))

    def test_limits(self) -> None:
        """As many messages as were asked for are given, and no more."""
        self.put("red", "blue", "red", "red")
        result = self.read(colour_is(b"red"), messages=2)
        self.assertEqual((result.count, result.next_offset), (2, 3))
        self.assertEqual(bodies(self.read(colour_is(b"red"), 3)), [b"red"])

    def test_bytes(self) -> None:
        """As many bytes as were asked for too; the first one is always given."""
        self.put("red", "blue", "red", body=b"." * 200)
        result = self.store.read(self.queue, 0, 32, 400, colour_is(b"red"))
        self.assertEqual((result.count, result.next_offset), (1, 2))

    def test_long(self) -> None:
        """Of long messages the body need not be read; they are found as well, with
        IPv6 hosts and topics of any length."""
        self.queue = self.store.queue("t" * 200, 0)
        self.put("red", "blue", body=b"." * looks.SMALL, born_host=BORN_HOST_V6)
        self.assertEqual(self.read(colour_is(b"blue")).count, 1)
        self.assertEqual(self.read(colour_is(b"green")).count, 0)

    def test_afterRestart(self) -> None:
        """What an earlier process has appended is found as well."""
        self.put("red", "blue")
        self.store.close()
        self.open()
        self.assertEqual(bodies(self.read(colour_is(b"blue"))), [b"blue"])

    def test_tags(self) -> None:
        """Tag codes can count besides, and then nothing else is looked at."""
        self.put("red", tag_code=1)
        self.put("red", tag_code=2)
        seen: list[bytes] = []

        def matches(properties: bytes) -> bool:
            seen.append(properties)
            return True

        self.assertEqual(self.read(MessageFilter((2).__eq__, matches)).count, 1)
        self.assertEqual(len(seen), 1)

    def test_budget(self) -> None:
        """One read looks at so many bytes and then ends with what it has."""
        self.put(*["blue"] * 6, "red")
        wanted = colour_is(b"red")
        wanted.cost = looks.MAX_SPENT // 3
        result = self.read(wanted)
        self.assertEqual((result.status, result.next_offset), (NO_MATCHED_MESSAGE, 3))
        result = self.read(wanted, 3)
        self.assertEqual((result.status, result.next_offset), (NO_MATCHED_MESSAGE, 6))
        self.assertEqual(bodies(self.read(wanted, 6)), [b"red"])

    def test_rotten(self) -> None:
        """A record that is none any more is passed over, as by any read."""
        self.put("red", "red")
        self.store.close()
        self.disk.open("/store/commitlog/00000000000000000000").pwrite(b"\0" * 8, 0)
        self.open()
        self.assertLess(looks.SMALL, LARGE)
        self.assertEqual(bodies(self.read(colour_is(b"red"))), [b"red"])

    def test_corrupt(self) -> None:
        """Of a record whose lengths cannot be right no properties are looked at."""
        seen: list[bytes] = []

        def matches(properties: bytes) -> bool:
            seen.append(properties)
            return False

        log = self.disk.open("/store/commitlog/00000000000000000000")
        for born_host, body_at in ((BORN_HOST, 84), (BORN_HOST_V6, 96)):
            first = self.queue.max_offset
            self.put("red", "blue", born_host=born_host, body=b"." * 20)
            at = self.store.entries(self.queue, first, 1)[0][0]
            topic_at = body_at + 4 + len(b"red") + 20
            for place, data in (
                *((each, b"\xff") for each in (0, 4, topic_at, topic_at + 2)),
                *((body_at, each) for each in (b"\xff" * 4, b"\x7f\xff", b"\0\0\1\0")),
            ):
                before = log.pread(len(data), at + place)
                log.pwrite(data, at + place)
                self.read(MessageFilter(None, matches), first)
                log.pwrite(before, at + place)
                self.assertEqual(seen, [b"colour\x01blue\x02"])
                seen.clear()

    def test_runs(self) -> None:
        """What another process has written is read in runs: with records of others
        between, small and large, and at the end of a segment."""
        other = self.store.queue("Other", 0)
        for number in range(200):
            self.put("blue" if number % 50 else "red", body=b"." * 500)
            if number % 3 == 0:
                size = 5000 if number % 9 == 0 else 10
                self.store.append([draft(other, b"." * size)])
        self.store.dispatch(1000)
        self.store.close()
        self.open()
        for first in (0, 100):
            result = self.read(colour_is(b"red"), first)
            self.assertEqual((result.count, result.next_offset), (2, first + 100))

    def test_oneRun(self) -> None:
        """Of records that follow each other many cost one read of the file."""
        self.put(*["blue"] * 10)
        self.store.close()
        self.open()
        found = self.store.has_wanted(self.queue, 0, 10, colour_is(b"red"))
        self.assertEqual(found, (False, 10 * looks.RECORD_NS + looks.READ_NS))

    def test_look(self) -> None:
        """One can ask whether something wanted has come, and what asking took."""
        self.put("red", "blue", "red")
        self.assertTrue(self.look(colour_is(b"blue")))
        self.assertFalse(self.look(colour_is(b"blue"), 2))
        self.assertFalse(self.look(colour_is(b"blue"), 0, 1))
        self.assertFalse(self.look(colour_is(b"blue"), 3))
        wanted = colour_is(b"green")
        wanted.cost = 100
        asked = self.store.has_wanted(self.queue, 1, 1, wanted)
        self.assertEqual(asked, (False, 100 + looks.RECORD_NS))

    def test_lookBudget(self) -> None:
        """Who would have to look at too much lets the reader do it."""
        self.put("red", "blue")
        wanted = colour_is(b"green")
        wanted.cost = looks.MAX_SPENT
        self.assertTrue(self.look(wanted))


class BatchTests(WantedCase):
    """Batches, by the properties of the whole."""

    def test_batches(self) -> None:
        """A batch is given whole, or not at all."""
        self.store.close()
        self.store = with_batches(self.disk, self.wall)
        self.queue = self.store.queue("B", 0)
        self.store.append([batch(self.queue, b"one", b"two"), batch(self.queue, b"x")])
        self.store.dispatch(100)
        two = MessageFilter(
            None, lambda properties: find(properties, b"INNER_NUM") == b"2"
        )
        result = self.read(two)
        self.assertEqual((result.count, result.next_offset), (2, 3))
        one = MessageFilter(
            None, lambda properties: find(properties, b"INNER_NUM") == b"1"
        )
        self.assertEqual((self.read(one).count, self.read(one).next_offset), (1, 3))
        self.assertTrue(self.look(one))


class HintTests(WantedCase):
    """With a hint of the filter."""

    def setUp(self) -> None:
        """What the filter has looked at is noted."""
        super().setUp()
        self.looked: list[bytes] = []

    def hinted(self, colour: bytes, is_hinted: bool = True) -> MessageFilter:
        """Messages of that colour, with the hint or without."""

        def matches(properties: bytes) -> bool:
            self.looked.append(properties)
            return find(properties, b"colour") == colour

        hint = re.compile(b"colour\1" + colour) if is_hinted else None
        return MessageFilter(None, matches, hint=hint)

    def test_passedOver(self) -> None:
        """Only records in which it is found are looked at; a body may have it, too."""
        self.put("red", "blue", "red", "bluer", "red")
        self.put("red", body=b"colour\1blue")
        result = self.read(self.hinted(b"blue"))
        self.assertEqual(bodies(result), [b"blue"])
        self.assertEqual(result.next_offset, 6)
        self.assertEqual(
            [each[7:11] for each in self.looked], [b"blue", b"blue", b"red\2"]
        )
        self.assertTrue(self.look(self.hinted(b"blue"), 1))
        self.assertFalse(self.look(self.hinted(b"blue"), 2))

    def test_between(self) -> None:
        """Records of other queues between them do not count."""
        own, other = self.queue, self.store.queue("T", 1)
        for queue, colour in zip([own, other] * 3, ("red", "blue") * 3, strict=True):
            self.queue = queue
            self.put(colour)
        self.queue = own
        self.put("blue")
        result = self.read(self.hinted(b"blue"))
        self.assertEqual((result.count, result.next_offset), (1, 4))
        self.assertEqual(len(self.looked), 1)

    def test_long(self) -> None:
        """Long records are not searched."""
        self.put("red", "red", "blue", body=bytes(looks.HINT_BYTES))
        self.assertEqual(self.read(self.hinted(b"blue")).count, 1)
        self.assertEqual(len(self.looked), 3)

    def test_start(self) -> None:
        """Records from before a start are not: they may be wrong, which counts."""
        self.put("red", "blue")
        self.store.close()
        self.open()
        self.assertEqual(self.read(self.hinted(b"blue")).count, 1)
        self.assertEqual(len(self.looked), 2)

    def test_codes(self) -> None:
        """Tag codes count as well."""
        self.put("blue", tag_code=1)
        self.put("blue", tag_code=2)
        wanted = self.hinted(b"blue")
        wanted.codes = (2).__eq__
        self.assertEqual(self.read(wanted).count, 1)

    def test_most(self) -> None:
        """A hint that is found in most records is used no more."""
        self.store.close()
        self.open(mapped_file_size_consume_queue=1000 * SIZE)
        colours = ["blue"] * looks.HINT_RECORDS + ["red"] * 10
        for colour in colours:
            properties = b"colour\1%b\2" % colour.encode()
            self.store.append([draft(self.queue, b"", properties=properties)])
        while self.store.dispatch(1000):
            pass
        wanted = self.hinted(b"blue")
        wanted.matches = self.none
        self.assertFalse(self.look(wanted, 0, len(colours)))
        self.assertEqual(len(self.looked), len(colours))

    def none(self, properties: bytes) -> bool:
        """No message matches."""
        self.looked.append(properties)
        return False

    def test_limit(self) -> None:
        """A search counts as time of the read."""
        self.put(*["red"] * 3)
        _, spent = self.store.has_wanted(self.queue, 0, 3, self.hinted(b"blue"))
        self.assertGreater(spent, 3 * looks.HINT_NS)
        self.assertLess(spent, 3 * looks.RECORD_NS)

    def test_same(self) -> None:
        """Reads find the same with a hint and without, in all segments."""
        source = Random(7)
        queues = [self.queue, self.store.queue("T", 1)]
        for _ in range(400):
            self.queue = source.choice(queues)
            body = bytes(source.choice((0, 10, 10, 10, 1000)))
            self.put(source.choice(("red", "red", "blue", "")), body=body)
        self.queue = queues[0]
        path = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"
        for number in source.sample(range(50), 3):
            entry = ENTRY.pack(source.choice((-5, 0, 1 << 40)), 100, 0)
            self.disk.open(path).pwrite(entry, number * 20)
        for messages in (1, 3, 32):
            found = []
            for is_hinted in (True, False):
                at, results = 0, []
                while at < self.queue.max_offset:
                    result = self.read(self.hinted(b"blue", is_hinted), at, messages)
                    at = result.next_offset
                    results.append((result.status, at, bodies(result)))
                found.append(results)
            self.assertEqual(*found)


class BitMapTests(WantedCase):
    """With bit maps in the queue's extension."""

    def setUp(self) -> None:
        """Blue messages have another map than the others."""
        super().setUp()
        self.store.close()
        self.open(enable_consume_queue_ext=True)
        self.store.calculate_bit_maps(
            lambda topic, properties: b"\1" if b"blue" in properties else b"\2"
        )

    def test_passedOver(self) -> None:
        """What cannot match by its bit map is not looked at."""
        self.put("red", "blue", "red")
        seen: list[tuple[int, bytes]] = []
        looked: list[bytes] = []

        def may_match(store_ms: int, bit_map: bytes) -> bool:
            seen.append((store_ms, bit_map))
            return bit_map == b"\1"

        def matches(properties: bytes) -> bool:
            looked.append(properties)
            return True

        result = self.read(MessageFilter(None, matches, may_match))
        self.assertEqual(bodies(result), [b"blue"])
        self.assertEqual(
            seen, [(START_MS, b"\2"), (START_MS, b"\1"), (START_MS, b"\2")]
        )
        self.assertEqual(len(looked), 1)

    def test_tags(self) -> None:
        """The tag code of the unit counts."""
        self.put("red", tag_code=1, properties=b"TAGS\x01a\x02")
        self.put("red", tag_code=2, properties=b"TAGS\x01b\x02")
        wanted = MessageFilter(lambda code: code == ord("b"), None)
        self.assertEqual(self.read(wanted).next_offset, 2)
        self.assertEqual(self.read(wanted).count, 1)
