"""Records of a master, looked at before they are stored."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY
from rocketbroker.records.record_head import RecordHead
from rocketbroker.records.sysflags import TRANSACTION_COMMIT, TRANSACTION_PREPARED
from rocketbroker.store.commitlog.received import (
    ReceivedRecords,
    heads_of,
    whole_records,
)
from rocketbroker.store.commitlog.scanner import (
    MAX_OFFSET,
    NO_CRC,
    Blank,
    Broken,
    parse,
    tag_code_of,
)
from tests.store.stores import BORN_HOST_V6, START, joined

#: Where their segment ends.
END = 1 << 20


def exact(data: bytes) -> list[RecordHead]:
    """All whole records, as the exact way has them."""
    found: list[RecordHead] = []
    at = 0
    while at < len(data):
        try:
            found.append(parse(data, at, START + at, NO_CRC))
        except (Blank, Broken):
            break
        at += found[-1].size
    return found


def heads(received: ReceivedRecords) -> list[RecordHead]:
    """The same of what was taken."""
    return [head for run in received.runs for head in heads_of(run)]


class ReceivedTests(SynchronousTestCase):
    """What is taken, and what is made of it."""

    def check(self, data: bytes) -> ReceivedRecords:
        """All is taken, and as it is."""
        received = whole_records(data, START, END)
        wanted = exact(data)
        self.assertEqual(heads(received), wanted)
        self.assertEqual(received.count, len(wanted))
        self.assertEqual(received.size, len(data))
        codes = [code for run in received.runs for code in run.codes]
        self.assertEqual(codes, [tag_code_of(head.properties) for head in wanted])
        places = [(head.position, head.size) for head in wanted]
        entries = [entry for run in received.runs for entry in run.entries]
        made = [(*place, code) for place, code in zip(places, codes, strict=True)]
        self.assertEqual([ENTRY.unpack(entry) for entry in entries], made)
        return received

    def test_runs(self) -> None:
        """A run has all that follow one another in one queue, of one time and flag."""
        received = self.check(
            joined(
                {},
                {},
                {"queue_id": 1, "queue_offset": 7},
                {"queue_id": 1, "queue_offset": 8},
                {"queue_id": 1, "queue_offset": 8},
                {"queue_id": 1, "queue_offset": 9, "topic": b"TT"},
                {"queue_id": 1, "queue_offset": 10, "topic": b"TT", "store_ms": 1},
                {"queue_id": 1, "queue_offset": 11, "topic": b"TU", "store_ms": 1},
                {"sys_flag": TRANSACTION_COMMIT},
                {"sys_flag": TRANSACTION_PREPARED, "queue_offset": 0},
                {"sys_flag": TRANSACTION_PREPARED, "queue_offset": 0},
            )
        )
        sizes = [len(run.positions) for run in received.runs]
        self.assertEqual(sizes, [2, 2, 1, 1, 1, 1, 1, 1, 1])
        end = received.runs[0].end
        self.assertEqual(end, received.runs[1].positions[0])

    def test_unusual(self) -> None:
        """Records of version 2, and those of clients with IPv6, are taken as well, and
        the ordinary ones between them."""
        long = {"topic": b"t" * 200}
        other = {"born_host": BORN_HOST_V6}
        both = {"store_host": BORN_HOST_V6, **other}
        self.check(joined({}, long, {}, {}, other, both, {}, long))
        last = {"queue_offset": MAX_OFFSET}
        self.check(joined({"queue_offset": MAX_OFFSET - 1}, last, {}))

    def test_tags(self) -> None:
        """Each has its own tag code, whatever the properties before it ended with."""
        shapes = (
            b"",
            b"TAGS\x01a",
            b"TAGS\x01a\x02",
            b"k\x01v\x02TAGS\x01a\x02",
            b"k\x01v\x02xTAGS\x01a\x02",
            b"k\x01v\x02TAGS\x01b\x02TAGS\x01a\x02",
            b"k\x01v\x02TAGS\x01a\x02xTAGS\x01b\x02",
            b"k\x01v\x02TAGS\x01aa\x02last\x01v\x02",
        )
        for first in shapes:
            for second in shapes:
                words = {"properties": first}, {"properties": second}
                self.check(joined(*words, *words))

    def test_anyByte(self) -> None:
        """Whatever byte is another, nothing is taken but what the exact way finds, and
        all of that."""
        data = joined({}, {"queue_id": 1, "queue_offset": 0, "properties": b""}, {})
        for at in range(len(data)):
            for value in (0, 1, 0x7F, 0x80, 0xFF):
                changed = data[:at] + bytes([value]) + data[at + 1 :]
                wanted = exact(changed)
                try:
                    taken = heads(whole_records(changed, START, END))
                except StoreError:
                    taken = []
                self.assertEqual(taken, wanted, (at, value))

    def test_noQueueBefore(self) -> None:
        """The first record need not be like those that a loop may begin with."""
        fields: dict[str, object] = {
            "topic": b"",
            "queue_id": -1,
            "sys_flag": 0,
            "store_ms": 0,
            "properties": b"",
        }
        self.check(joined(fields, fields))
