"""Tests of L{rocketbroker.codec.sends} and L{rocketbroker.codec.scanning}."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

import rocketbroker
from rocketbroker.broker.send.send_checks import fields_of
from rocketbroker.codec.scanning import are_plain, skip_plain, skip_text, skip_value
from rocketbroker.codec.sends import MAX_RUN, MAX_SHAPES, SendReader
from rocketbroker.errors import BrokerError, RemoteProtocolError
from rocketbroker.wire.frames import decode
from rocketbroker.wire.hot import NOT_READ, SendHeader, read_send
from tests.examples import examples
from tests.heavy import HEAVY
from tests.wire.vectors import vectors

#: How many damaged headers all readers are given.
MUTATIONS: Final = 1_000_000 if HEAVY else 2_000

UNIQUE = "7F0000010001"

FIELDS: dict[str, Any] = {
    "a": "PG",
    "b": "T",
    "c": "TBW102",
    "d": "4",
    "e": "3",
    "f": "1",
    "g": "1700000000000",
    "h": "-7",
    "i": f"KEYS\x01k1\x02UNIQ_KEY\x01{UNIQUE}\x02TAGS\x01A",
    "j": "2",
    "k": "true",
    "m": "false",
    "n": "broker-a",
}

#: What may be read otherwise elsewhere.
LEFT: tuple[dict[str, Any], ...] = (
    {"m": "true"},
    {"e": "4"},
    {"b": "U"},
    {"e": "03"},
    {"e": ""},
    {"e": 3},
    {"h": "2147483648"},
    {"g": "1" * 19},
    {"h": "+1"},
    {"h": "-0"},
    {"f": "4"},
    {"f": "16"},
    {"k": "yes"},
    {"n": "\u00fc"},
    {"n": 'a"'},
    {"i": "TAGS\x01A"},
    {"i": "UNIQ_KEY\x01"},
    {"i": f"XUNIQ_KEY\x01{UNIQUE}"},
    {"i": f"UNIQ_KEY\x01{UNIQUE}\x02UNIQ_KEY\x01{UNIQUE}"},
    {"i": f"UNIQ_KEY\x01{UNIQUE}\x02KEYS\x01a\x02KEYS\x01b"},
    {"i": f"UNIQ_KEY\x01{UNIQUE}\x02A\x01b\x01"},
    {"i": f"UNIQ_KEY\x01{UNIQUE}\x02A\x01b\nc"},
    {"i": f"UNIQ_KEY\x01{UNIQUE}\x02TAGS\x01\u00fc"},
    {"long": None},
)


class Peer:
    """A connection."""

    peer_host = b"12345678"


def header_of(fields: dict[str, Any] | None = None, **more: Any) -> bytes:
    """The JSON header of a send."""
    top = {
        "code": 310,
        "extFields": {**FIELDS, **(fields or {})},
        "flag": 0,
        "language": "JAVA",
        "opaque": 9,
        "serializeTypeCurrentRPC": "JSON",
        "version": 435,
        **more,
    }
    return json.dumps(top, separators=(",", ":"), ensure_ascii=False).encode()


def frame_of(header: bytes, body: bytes = b"body") -> bytes:
    """A frame."""
    size = len(header)
    return (size + len(body) + 4).to_bytes(4) + size.to_bytes(4) + header + body


#: What a piece of a header is replaced by.
PIECES: Final = (
    *(b"", b'"', b'""', b",", b"}", b"{", b":", b"\\", b"\\u0001", b"\\u0002", b"Z"),
    *(b"0", b"-", b"e", b"null", b"true", b"false", b'"flag":1,', b'"e":"1",'),
    *(b'"code":11,', b'"extFields":', b'"opaque":1,', b'"UNIQ_KEY\\u0001'),
)

#: Numbers that a typed decoder takes and RocketMQ does not: 1e3, 170.0.
LENIENT: Final = re.compile(rb'":"?-?[0-9]+[.eE]')


def real_headers() -> list[bytes]:
    """The headers of sends that official clients made, and one with all fields."""
    frames = [
        one.frame
        for one in vectors()
        if one.request_code == 310 and not one.is_answer and one.frame[4] == 0
    ]
    return [
        header_of(),
        *(one[8 : 8 + int.from_bytes(one[5:8])] for one in frames),
    ]


def mutations(headers: list[bytes], count: int, seed: int) -> Iterator[bytes]:
    """So many headers of sends, each damaged in one to three places."""
    chance = random.Random(seed)
    start = len(b'{"code":310,')
    for _ in range(count):
        header = bytearray(chance.choice(headers))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(start, max(len(header), start + 1))
            kind = chance.random()
            if kind < 0.5:
                put = chance.choice(PIECES)
            elif kind < 0.8:
                put = chance.randbytes(1)
            else:
                copied = chance.randrange(len(header))
                put = bytes(header[copied : copied + chance.randint(1, 20)])
            header[at : at + chance.randint(0, 3)] = put
        yield bytes(header)


def interpreted_reader() -> Any:
    """L{SendReader} from its source, also where the compiled one runs."""
    path = Path(rocketbroker.__file__).parent / "codec" / "sends.py"
    loader = SourceFileLoader("interpreted_sends", str(path))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module.SendReader


class SendReaderTests(SynchronousTestCase):
    """Frames become drafts, or are left."""

    def setUp(self) -> None:
        """A reader that knows one queue."""
        self.examined: list[str] = []
        self.code: int | None = 5
        self.reader = SendReader(self.examine)
        self.reader.configure(b"R\x01r\x02", True)
        self.reader.approve("T", 3, "queue", "counters")
        self.peer = Peer()
        self.drafts: list[Any] = []

    def examine(self, own: str) -> tuple[int, bool] | None:
        """Note properties; they are ordinary as long as there is a code."""
        self.examined.append(own)
        return None if self.code is None else (self.code, False)

    def take(self, data: bytes, start: int = 0, most: int = 1 << 20) -> int:
        """Where the first frame begins that was not taken."""
        self.drafts = []
        end = self.reader.take(self.peer, self.drafts, data, start, most, 1000)
        self.assertEqual(len(self.drafts), self.reader.taken)
        return end

    def takes(self, header: bytes) -> bool:
        """Whether a frame with this header is taken."""
        frame = frame_of(header)
        end = self.take(frame)
        self.assertIn(end, (0, len(frame)))
        return end > 0

    def test_draft(self) -> None:
        """A draft has all that a header says."""
        self.assertTrue(self.takes(header_of()))
        (draft,) = self.drafts
        self.assertEqual((draft.queue, draft.body), ("queue", b"body"))
        stored = FIELDS["i"].encode() + b"\x02R\x01r\x02"
        self.assertEqual(draft.properties, stored)
        self.assertEqual((draft.flag, draft.sys_flag), (-7, 1))
        self.assertEqual((draft.born_ms, draft.reconsume_times), (1700000000000, 2))
        self.assertEqual((draft.born_host, draft.tag_code), (b"12345678", 5))
        context = (self.peer, 9, UNIQUE.encode(), "counters")
        self.assertEqual(draft.context, context)
        self.assertEqual((draft.parts, draft.wait, draft.status), (None, False, -1))

    def test_wait(self) -> None:
        """A draft waits if its properties say so, or if nothing is to be waited for."""
        self.reader.configure(b"", False)
        self.reader.approve("T", 3, "queue", "counters")
        self.assertTrue(self.takes(header_of()))
        self.assertTrue(self.drafts[0].wait)

    def test_oneway(self) -> None:
        """A oneway send has no connection to answer to."""
        self.assertTrue(self.takes(header_of(flag=2)))
        self.assertIsNone(self.drafts[0].context[0])

    def test_shapes(self) -> None:
        """Properties are examined once for all values of the two keys, in any order."""
        texts = [
            f"UNIQ_KEY\x01{UNIQUE}{{}}\x02TAGS\x01A\x02",
            f"UNIQ_KEY\x01{UNIQUE}{{}}",
            f"KEYS\x01{{}}\x02UNIQ_KEY\x01{UNIQUE}\x02W\x01true\x02",
            f"A\x01\x02UNIQ_KEY\x01{UNIQUE}\x02W\x01true\x02KEYS\x01{{}}",
            f"UNIQ_KEY\x01{UNIQUE}\x02KEYS\x01{{}}\x02B\x01c",
        ]
        for value in ("", "a", "b c_d", "k" * 40):
            for text in texts:
                own = text.format(value)
                self.assertTrue(self.takes(header_of({"i": own})), own)
                end = "" if own.endswith("\x02") else "\x02"
                expected = f"{own}{end}R\x01r\x02".encode()
                self.assertEqual(self.drafts[0].properties, expected)
            self.assertEqual(len(self.examined), len(texts))

    def test_notOrdinary(self) -> None:
        """What is not ordinary is left, and asked about again."""
        self.code = None
        self.assertFalse(self.takes(header_of()))
        self.assertFalse(self.takes(header_of()))
        self.assertEqual(len(self.examined), 2)

    def test_bounded(self) -> None:
        """No more shapes are kept than that."""
        for number in (*range(MAX_SHAPES + 1), 0):
            own = f"N{number}\x01\x02UNIQ_KEY\x01{UNIQUE}"
            self.assertTrue(self.takes(header_of({"i": own})))
        self.assertEqual(len(self.examined), MAX_SHAPES + 2)

    def test_left(self) -> None:
        """What may be read otherwise elsewhere is left."""
        for fields in LEFT:
            self.assertFalse(self.takes(header_of(fields)), fields)
        for more in ({"flag": 1}, {"opaque": 1 << 31}, {"opaque": "9"}, {"code": 11}):
            self.assertFalse(self.takes(header_of(**more)), more)
        header = header_of()
        self.assertFalse(self.takes(header + b" "))
        self.assertFalse(self.takes(header.replace(b":9,", b": 9,")))
        self.assertFalse(self.takes(header.replace(b'"b":', b'"e":"3","b":')))
        self.assertFalse(self.takes(header.replace(b'"flag"', b'"code":11,"flag"')))
        for name in "befghi":
            fields = {key: text for key, text in FIELDS.items() if key != name}
            self.assertFalse(self.takes(header_of(extFields=fields)), name)

    def test_cut(self) -> None:
        """Whole frames are taken in order, as many as there are, and no part of one."""
        frame = frame_of(header_of())
        data = frame * 3
        for end in range(len(data) + 1):
            whole = end // len(frame)
            self.assertEqual(self.take(data[:end]), whole * len(frame))
            self.assertEqual(len(self.drafts), whole)
        self.assertEqual(self.take(b"xy" + data, 2), 2 + len(data))
        self.assertEqual(self.take(data, most=len(frame) - 4), len(data))
        self.assertEqual(self.take(data, most=len(frame) - 5), 0)
        other = frame_of(header_of(code=11))
        self.assertEqual(self.take(frame + other + frame), len(frame))
        self.assertEqual(self.take(frame_of(header_of(), b"")), 0)
        self.assertEqual(self.take(frame * (MAX_RUN + 5)), len(frame) * MAX_RUN)

    def test_room(self) -> None:
        """No more are taken than there is room for."""
        data = frame_of(header_of()) * 3
        for room in (-1, 0, 2):
            self.reader.take(self.peer, self.drafts, data, 0, 1 << 20, room)
            self.assertEqual(self.reader.taken, max(room, 0))

    def test_lengths(self) -> None:
        """Lengths that cannot be are left, or are others that can."""
        frame = frame_of(header_of())
        for at in range(8):
            for value in (0, 1, 0x7F, 0x80, 0xFF):
                other = frame[:at] + bytes((value,)) + frame[at + 1 :]
                if other != frame:
                    self.assertEqual(self.take(other), 0)

    def test_forget(self) -> None:
        """A topic that changed is not approved any more."""
        self.reader.forget("T")
        self.assertFalse(self.takes(header_of()))

    @examples()
    @given(st.data())
    def test_damaged(self, data: st.DataObject) -> None:
        """Of a header that is damaged anywhere nothing is read that the typed decoder
        would not read."""
        header = bytearray(header_of())
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(header) - 1))
            put = data.draw(
                st.sampled_from([b"", b'"', b",", b"}", b"{", b"\\", b":", b"0", b"-"])
                | st.binary(max_size=2)
                | st.just(bytes(header[at : at + 9]))
            )
            header[at : at + data.draw(st.integers(0, 3))] = put
        if not self.takes(bytes(header)):
            return
        (draft,) = self.drafts
        try:
            read = read_send(bytes(header))
        except NOT_READ as error:
            raise AssertionError(bytes(header)) from error
        fields = read.extFields
        self.assertEqual((fields.b, fields.e, fields.m), ("T", 3, False))
        self.assertEqual(fields.j, draft.reconsume_times)
        self.assertEqual(
            (fields.f, fields.g, fields.h, read.opaque),
            (draft.sys_flag, draft.born_ms, draft.flag, draft.context[1]),
        )
        end = "" if fields.i.endswith("\x02") else "\x02"
        stored = f"{fields.i}{end}R\x01r\x02"
        self.assertEqual(draft.properties.decode(), stored)
        key = draft.context[2].decode()
        self.assertIn(f"\x02UNIQ_KEY\x01{key}\x02", f"\x02{stored}")


class AgreementTests(SynchronousTestCase):
    """The readers of a send agree: the compiled one, its interpreted form, the typed
    decoder of the hot way, and the decoder that takes all that fastjson takes."""

    def setUp(self) -> None:
        """Readers that know the queues of all real headers."""
        self.headers = real_headers()
        self.readers = [SendReader(self.examine), interpreted_reader()(self.examine)]
        for reader in self.readers:
            reader.configure(b"", True)
            for header in self.headers:
                fields = read_send(header).extFields
                reader.approve(fields.b, fields.e, (fields.b, fields.e), "counters")

    @staticmethod
    def examine(own: str) -> tuple[int, bool] | None:
        """All properties are ordinary."""
        return 5, False

    def drafts_of(self, header: bytes) -> list[tuple[Any, ...] | None]:
        """What each reader makes of a header: its draft's fields, or nothing."""
        found: list[tuple[Any, ...] | None] = []
        for reader in self.readers:
            drafts: list[Any] = []
            frame = frame_of(header)
            end = reader.take(Peer, drafts, frame, 0, 1 << 20, 10)
            self.assertEqual(end, len(frame) if drafts else 0, header)
            found.append(None)
            for one in drafts:
                to, opaque = one.context[:2]
                numbers = one.sys_flag, one.born_ms, one.flag, one.reconsume_times
                found[-1] = (*one.queue, *numbers, one.properties, to is None, opaque)
        return found

    @staticmethod
    def typed(header: bytes) -> SendHeader | None:
        """What the hot way reads."""
        try:
            return read_send(header)
        except NOT_READ:
            return None

    def check(self, header: bytes) -> bool:
        """Compare what the readers make of one header; whether it is a draft."""
        draft, interpreted = self.drafts_of(header)
        self.assertEqual(draft, interpreted, header)
        read = self.typed(header)
        if read is None:
            self.assertIsNone(draft, header)
            return False
        fields = read.extFields
        if draft is not None:
            stored = fields.i if fields.i.endswith("\x02") else fields.i + "\x02"
            numbers = fields.e, fields.f, fields.g, fields.h, fields.j
            expected = (fields.b, *numbers, stored.encode(), bool(read.flag & 2))
            self.assertEqual(draft, (*expected, read.opaque), header)
            self.assertEqual((read.flag & 1, fields.m), (0, False), header)
        try:
            command = decode(len(header).to_bytes(4) + header)
            if command.code == 310:
                general = fields_of(command), command.opaque, command.flag
                self.assertEqual((fields, read.opaque, read.flag), general, header)
        except RemoteProtocolError as error:
            # The hot ways do not look at what nobody needs.
            self.assertRegex(str(error), "^(version|language|code|a number|a lang)")
        except BrokerError as error:
            if not str(error).startswith("l is not a number"):
                self.assertRegex(header, LENIENT)
        return draft is not None

    def test_realHeadersAreTaken(self) -> None:
        """All readers take what official clients send."""
        self.assertGreaterEqual(len(self.headers), 5)
        for header in self.headers:
            self.assertTrue(self.check(header), header)

    def test_namesAreComparedWhole(self) -> None:
        """A name that only begins like a known one is another name."""
        for old, new in (
            (b'"extFields"', b'"extFieldZ"'),
            (b'"extFields"', b'"extFieldss"'),
            (b'"opaque"', b'"opaqXX"'),
            (b'"opaque"', b'"opaquX"'),
            (b'"opaque"', b'"opaqXe"'),
            (b'"flag"', b'"flaX"'),
            (b'"b":', b'""":'),
            (b'"n":', b'""":'),
            (b'"UNIQ_KEY', b'"UNIQ_KEX'),
        ):
            for header in self.headers:
                self.check(header.replace(old, new))

    def test_damagedHeaders(self) -> None:
        """They agree on headers of official clients that are damaged anywhere."""
        taken = sum(map(self.check, mutations(self.headers, MUTATIONS, 31)))
        self.assertGreater(taken, MUTATIONS // 50)


class ScanningTests(SynchronousTestCase):
    """The ways over bytes."""

    def test_plain(self) -> None:
        """Of eight characters each is looked at."""
        for place in range(8):
            for unit in range(256):
                text = bytearray(b"abcd efg")
                text[place] = unit
                word = int.from_bytes(text, signed=True)
                expected = 0x20 <= unit < 0x80 and unit not in b'"\\'
                self.assertEqual(are_plain(word), expected, (place, unit))
                stop = 8 if expected else place
                self.assertEqual(skip_plain(bytes(text), 0, 8), stop)

    def test_text(self) -> None:
        """A string ends at its quote; one with anything else in it is left."""
        self.assertEqual(skip_text(b'abc",', 0, 5), 4)
        for other in (b"abc", b'a\\"', b'a\n"', b'a\x80"'):
            self.assertEqual(skip_text(other, 0, len(other)), -1)

    def test_value(self) -> None:
        """Strings and small whole numbers are skipped, nothing else."""
        for text, end in ((b'"a"', 3), (b"0,", 1), (b"435}", 3), (b"1.5", 1)):
            self.assertEqual(skip_value(text, 0, len(text)), end)
        for other in (b"", b"01", b"-1", b"null", b"[1]", b"1" * 10):
            self.assertEqual(skip_value(other, 0, len(other)), -1)
