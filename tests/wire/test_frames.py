"""Tests of frames."""

from __future__ import annotations

from struct import pack

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import LocalProtocolError, RemoteProtocolError
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import BINARY, JSON, RESPONSE, Command
from rocketbroker.wire.frames import MAX_BYTES, MAX_READ_BYTES, decode, encode
from rocketbroker.wire.headers.send import SendMessageRequestHeaderV2
from tests.examples import examples
from tests.wire.strategies import INT16, commands, parts
from tests.wire.vectors import vectors

ROUTE = Command(105, {"topic": "T1"}, b"xx", opaque=7, version=0)
REMARK = Command(1, None, opaque=2, flag=RESPONSE, version=0, remark="\u4e2d")
SEND = Command(
    310,
    SendMessageRequestHeaderV2(
        producer_group="PG",
        topic="T",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=1,
        sys_flag=0,
        born_timestamp=5,
        flag=0,
        properties="K\x01V\x02",
        reconsume_times=0,
        unit_mode=False,
        batch=False,
        broker_name="b1",
    ).to_ext(),
    opaque=1,
    version=0,
)
#: The samples of C{docs/facts/remoting.md} 1 to 3.
ROUTE_JSON = pack(">ii", 0x80, 0x7A) + (
    b'{"code":105,"extFields":{"topic":"T1"},"flag":0,"language":"JAVA","opaque":7,'
    b'"serializeTypeCurrentRPC":"JSON","version":0}xx'
)
ROUTE_BINARY = bytes.fromhex(
    "00000028010000220069000000000000070000000000000000"
    "0000000d0005746f7069630000000254317878"
)
REMARK_BINARY = bytes.fromhex(
    "0000001c010000180001000000000000020000000100000003e4b8ad00000000"
)
SEND_BINARY = bytes.fromhex(
    "000000930100008f0136000000000000010000000000000000"
    "0000007a0001610000000250470001620000000154000163000000065442573130320001640000"
    "000134000165000000013100016600000001300001670000000135000168000000013000016900"
    "0000044b01560200016a000000013000016b0000000566616c736500016d0000000566616c7365"
    "00016e000000026231"
)


def json_frame(header: bytes, body: bytes = b"") -> bytes:
    """The payload of a frame with this JSON header."""
    return pack(">i", len(header)) + header + body


def binary_frame(header: bytes, body: bytes = b"") -> bytes:
    """The payload of a frame with this binary header."""
    return pack(">i", 1 << 24 | len(header)) + header + body


def binary_header(remark: bytes, ext: bytes, ext_size: int | None = None) -> bytes:
    """A binary header; the remark comes with its length."""
    size = len(ext) if ext_size is None else ext_size
    return pack(">hbhii", 10, 0, 0, 1, 0) + remark + pack(">i", size) + ext


class SampleTests(SynchronousTestCase):
    """The samples of C{docs/facts/remoting.md}."""

    def test_encode(self) -> None:
        """Frames are written as RocketMQ writes them."""
        self.assertEqual(encode(ROUTE), ROUTE_JSON)
        self.assertEqual(encode(ROUTE, BINARY), ROUTE_BINARY)
        self.assertEqual(encode(REMARK, BINARY), REMARK_BINARY)
        self.assertEqual(encode(SEND, BINARY), SEND_BINARY)

    def test_decode(self) -> None:
        """They are read as they were written."""
        for frame, command in (
            (ROUTE_JSON, ROUTE),
            (ROUTE_BINARY, ROUTE),
            (REMARK_BINARY, REMARK),
            (SEND_BINARY, SEND),
        ):
            self.assertEqual(parts(decode(frame[4:])), parts(command))

    def test_response(self) -> None:
        """A response without a header has no extension fields, and its remark."""
        command = Command(17, None, opaque=7, flag=1, version=0, remark="rem")
        self.assertEqual(
            encode(command)[8:],
            b'{"code":17,"flag":1,"language":"JAVA","opaque":7,"remark":"rem",'
            b'"serializeTypeCurrentRPC":"JSON","version":0}',
        )

    def test_escapes(self) -> None:
        """Properties have separators that JSON escapes, with capitals."""
        frame = encode(SEND)
        self.assertIn(b'"i":"K\\u0001V\\u0002"', frame)
        self.assertEqual(parts(decode(frame[4:])), parts(SEND))


class JsonTests(SynchronousTestCase):
    """What a JSON header may be (section 2)."""

    def read(self, text: str) -> Command:
        """The command with this header."""
        return decode(json_frame(text.encode(), b"body"))

    def test_defaults(self) -> None:
        """What is missing is zero, the language Java."""
        command = self.read("{}")
        self.assertEqual(parts(command), (0, None, b"body", 0, 0, 0, "JAVA", None))

    def test_values(self) -> None:
        """Numbers and booleans as fields become their text; null is left out."""
        command = self.read(
            '{"code":10,"extFields":{"a":3,"b":true,"c":null,"d":"","e":1.5,"f":{},'
            '"g":[1],"h":false}}'
        )
        self.assertEqual(
            command.ext, {"a": "3", "b": "true", "d": "", "e": "1.5", "h": "false"}
        )

    def test_quotedNumbers(self) -> None:
        """Numbers of the header may stand in quotes."""
        command = self.read('{"code":"10","opaque":"-7","flag":"3","version":"317"}')
        self.assertEqual(
            (command.code, command.opaque, command.flag, command.version),
            (10, -7, 3, 317),
        )

    def test_nulls(self) -> None:
        """Null is as if it was missing, but for the language, which is then unknown."""
        command = self.read(
            '{"code":null,"extFields":null,"flag":"","language":null,"remark":null}'
        )
        self.assertEqual(parts(command), (0, None, b"body", 0, 0, 0, None, None))

    def test_languages(self) -> None:
        """A language may be its number; a name that nobody knows is none."""
        for text, language in (
            ('"GO"', "GO"),
            ("9", "GO"),
            ("13", "NODE_JS"),
            ('"KLINGON"', None),
            ("[]", None),
        ):
            self.assertEqual(self.read(f'{{"language":{text}}}').language, language)
        for text in ("14", "-1"):
            with self.assertRaises(RemoteProtocolError):
                self.read(f'{{"language":{text}}}')

    def test_unknown(self) -> None:
        """Unknown members are ignored, whatever they hold."""
        command = self.read('{"x":{"y":[1,{}]},"code":5,"serializeTypeCurrentRPC":"?"}')
        self.assertEqual(command.code, 5)

    def test_remark(self) -> None:
        """A remark that is a number is its text."""
        self.assertEqual(self.read('{"remark":5}').remark, "5")
        self.assertEqual(self.read('{"remark":""}').remark, "")

    def test_cpp(self) -> None:
        """The C++ client ends its header with a line, and quotes no numbers."""
        command = self.read('{"code":10,"extFields":{"queueId":3},"language":"CPP"}\n')
        self.assertEqual((command.ext, command.language), ({"queueId": "3"}, "CPP"))

    def test_go(self) -> None:
        """The Go client has an empty remark and no serialization in its header."""
        command = self.read(
            '{"code":34,"language":"GO","version":317,"opaque":1,"flag":0,"remark":"",'
            '"extFields":{}}'
        )
        self.assertEqual((command.remark, command.ext), ("", {}))

    def test_dialect(self) -> None:
        """What only RocketMQ's library takes is taken."""
        command = self.read("{'code':10,extFields:{1:'a',},/* b */'flag':2}")
        self.assertEqual((command.code, command.ext, command.flag), (10, {"1": "a"}, 2))

    def test_noUtf8(self) -> None:
        """Bytes that are not UTF-8 become replacements."""
        command = decode(json_frame(b'{"remark":"\xff"}'))
        self.assertEqual(command.remark, "\ufffd")

    def test_refused(self) -> None:
        """What is no object, or has numbers that are none, is refused."""
        for text in (
            "",
            " ",
            "null",
            "[]",
            "5",
            '"x"',
            "{",
            "{}x",
            "{} {}",
            '{"code":"x"}',
            '{"code":2147483648}',
            '{"code":"2147483648"}',
            '{"opaque":-2147483649}',
            '{"flag":99999999999999999999}',
            '{"version":1e99}',
            '{"version":1e999}',
            '{"code":[]}',
            '{"extFields":[]}',
            '{"extFields":5}',
            "[" * 5000,
            '{"a":' * 5000,
        ):
            with self.assertRaises(RemoteProtocolError):
                self.fail(f"{text[:40]!r} was read as {self.read(text)}")

    def test_longest(self) -> None:
        """A header is read up to a limit, whether it is JSON or only like it."""
        for start, end in (("{code:10,x:'", "'}"), ('{"code":10,"remark":"', '"}')):
            fill = "x" * (MAX_READ_BYTES - len(start) - len(end))
            self.assertEqual(self.read(start + fill + end).code, 10)
            with self.assertRaises(RemoteProtocolError) as caught:
                self.read(start + fill + "x" + end)
            self.assertEqual(
                str(caught.exception),
                f"a header of {MAX_READ_BYTES + 1} bytes, the most is {MAX_READ_BYTES}",
            )


class BinaryTests(SynchronousTestCase):
    """What a binary header may be (section 3)."""

    def test_shortest(self) -> None:
        """A header of 21 bytes has neither remark nor fields."""
        header = binary_header(bytes(4), b"")
        self.assertEqual(len(header), 21)
        command = decode(binary_frame(header, b"body"))
        self.assertEqual(parts(command), (10, None, b"body", 1, 0, 0, "JAVA", None))

    def test_cut(self) -> None:
        """A frame that ends within its header is refused."""
        for end in range(21):
            with self.assertRaises(RemoteProtocolError):
                decode(binary_frame(binary_header(bytes(4), b"")[:end]))

    def test_negativeCode(self) -> None:
        """The code has 16 bits and a sign."""
        header = pack(">hbhiiii", -5, -1, -1, -1, -1, 0, 0)
        command = decode(binary_frame(header))
        self.assertEqual(parts(command), (-5, None, b"", -1, -1, -1, None, None))

    def test_emptyValues(self) -> None:
        """An empty value or key is null, and so left out; the last of two keys wins."""
        ext = (
            pack(">h1si", 1, b"a", 0)
            + pack(">hi1s", 0, 1, b"x")
            + pack(">h1si1s", 1, b"b", 1, b"1")
            + pack(">h1si1s", 1, b"b", 1, b"2")
            + pack(">h1si1s", 1, b"c", 1, b"1")
            + pack(">h1si", 1, b"c", 0)
        )
        command = decode(binary_frame(binary_header(bytes(4), ext)))
        self.assertEqual(command.ext, {"b": "2"})

    def test_negativeFields(self) -> None:
        """A negative length of all fields means that there are none."""
        command = decode(binary_frame(binary_header(bytes(4), b"", -1), b"body"))
        self.assertEqual((command.ext, command.body), (None, b"body"))

    def test_noUtf8(self) -> None:
        """Bytes that are not UTF-8 become replacements."""
        header = binary_header(pack(">i", 1) + b"\xff", b"")
        self.assertEqual(decode(binary_frame(header)).remark, "\ufffd")

    def test_lengths(self) -> None:
        """A length that is negative, or more than what it is a part of, is refused."""
        ext = pack(">h1si1s", 1, b"a", 1, b"1")
        for header in (
            binary_header(pack(">i", -1), b""),
            binary_header(pack(">i", 22), b""),
            binary_header(pack(">i", 0x7FFFFFFF), b""),
            binary_header(bytes(4), ext, len(ext) + 50),
            binary_header(bytes(4), ext, 0x7FFFFFFF),
            binary_header(bytes(4), pack(">h", -1)),
            binary_header(bytes(4), pack(">h1s", 9, b"a")),
            binary_header(bytes(4), pack(">h1si", 1, b"a", -1)),
            binary_header(bytes(4), pack(">h1si", 1, b"a", 100) + bytes(90)),
        ):
            with self.assertRaises(RemoteProtocolError):
                self.fail(f"{header!r} was read as {decode(binary_frame(header))}")

    def test_shiftedBody(self) -> None:
        """The body begins where the fields end, not where the header does."""
        header = binary_header(bytes(4), b"")
        command = decode(binary_frame(header + b"__", b"body"))
        self.assertEqual(command.body, b"__bo")

    def test_intoTheBody(self) -> None:
        """Fields that run into the body are refused when the frame ends before it."""
        ext = pack(">h1si2s", 1, b"a", 2, b"12")
        whole = binary_header(bytes(4), ext)
        payload = pack(">i", 1 << 24 | len(whole) - 2) + whole + b"b"
        with self.assertRaises(RemoteProtocolError):
            decode(payload)

    def test_pop(self) -> None:
        """A code beyond 16 bits cannot be sent, because nobody would understand it."""
        command = Command(RequestCode.POP_MESSAGE)
        self.assertEqual(decode(encode(command)[4:]).code, 200050)
        with self.assertRaises(LocalProtocolError):
            encode(command, BINARY)


class FrameTests(SynchronousTestCase):
    """The words before the header (section 1)."""

    def test_serialization(self) -> None:
        """There are two serializations."""
        for kind in (2, 0x7F, 0xFF):
            with self.assertRaises(RemoteProtocolError):
                decode(bytes([kind, 0, 0, 2]) + b"{}")
        with self.assertRaises(LocalProtocolError):
            encode(ROUTE, 2)

    def test_headerLength(self) -> None:
        """A header that is longer than its frame is refused."""
        for payload in (
            b"",
            b"\0\0\0",
            b"\0\0\0\1",
            b"\0\0\0\3{}",
            b"\0\xff\xff\xff{}",
        ):
            with self.assertRaises(RemoteProtocolError):
                decode(payload)

    def test_longest(self) -> None:
        """A frame of just the limit can be sent, one byte more cannot."""
        for kind in (JSON, BINARY):
            room = MAX_BYTES - len(encode(Command(10), kind))
            frame = encode(Command(10, body=bytes(room)), kind)
            self.assertEqual(len(frame), MAX_BYTES)
            self.assertEqual(len(decode(frame[4:]).body), room)
            with self.assertRaises(LocalProtocolError):
                encode(Command(10, body=bytes(room + 1)), kind)

    def test_longestHeader(self) -> None:
        """A header that its length cannot tell cannot be sent, whatever the limit."""
        with self.assertRaises(LocalProtocolError):
            encode(Command(10, remark="x" * (1 << 24)), JSON, 1 << 26)

    def test_longestKey(self) -> None:
        """A key of a binary header has at most 32767 bytes."""
        most = Command(10, {"k" * 0x7FFF: "v"}, version=0)
        self.assertEqual(decode(encode(most, BINARY)[4:]).ext, most.ext)
        with self.assertRaises(LocalProtocolError):
            encode(Command(10, {"k" * 0x8000: "v"}), BINARY)

    def test_noNumbers(self) -> None:
        """Numbers that their fields cannot hold cannot be sent."""
        for kind in (JSON, BINARY):
            for command in (
                Command(1 << 31),
                Command(10, opaque=-(1 << 31) - 1),
                Command(10, flag=1 << 31),
                Command(10, version=1 << 31),
                Command(10, language="KLINGON"),
                Command(10, remark="\ud800"),
                Command(10, {"\udfff": "x"}),
                Command(10, {"x": "\ud83d"}),
            ):
                with self.assertRaises(LocalProtocolError):
                    encode(command, kind)


class VectorTests(SynchronousTestCase):
    """Frames captured from the official servers and clients."""

    def test_roundTrip(self) -> None:
        """Each is read, and what is written again is read as the same."""
        for vector in vectors():
            command = decode(vector.frame[4:])
            for kind in (JSON, BINARY):
                if kind == BINARY and not -0x8000 <= command.code < 0x8000:
                    continue
                again = decode(encode(command, kind)[4:])
                if kind == BINARY:
                    command.ext = {k: v for k, v in (command.ext or {}).items() if v}
                    again.ext = again.ext or {}
                    command.remark = command.remark or None
                self.assertEqual(parts(again), parts(command), vector.label)

    def test_sameLength(self) -> None:
        """What is written again in the same serialization is as long as the original.

        Java's maps have an order of their own, hence only the length. Of a binary
        header we do not keep fields that are empty: Java's are the attributes of new
        topics. The Go client leaves out a member that says what the frame says, too.
        """
        lost = 2 + len("attributes") + 4
        added = len(b',"serializeTypeCurrentRPC":"JSON"')
        for vector in vectors():
            command = decode(vector.frame[4:])
            length = len(encode(command, vector.frame[4]))
            if b"attributes\0\0\0\0" in vector.frame and vector.frame[4] == BINARY:
                length += lost
            if b'"language":"GO"' in vector.frame:
                length -= added
            self.assertEqual(length, len(vector.frame), vector.label)

    def test_cut(self) -> None:
        """A frame that ends too early is refused, or had its body cut."""
        for vector in vectors():
            payload = vector.frame[4:]
            body = len(decode(payload).body)
            for end in range(len(payload) - body):
                with self.assertRaises(RemoteProtocolError):
                    decode(payload[:end])


class PropertyTests(SynchronousTestCase):
    """Any commands, and any bytes."""

    @examples()
    @given(commands())
    def test_json(self, command: Command) -> None:
        """What is written as JSON is read."""
        self.assertEqual(parts(decode(encode(command)[4:])), parts(command))

    @examples()
    @given(commands(INT16, least=1))
    def test_binary(self, command: Command) -> None:
        """What is written as binary is read."""
        self.assertEqual(parts(decode(encode(command, BINARY)[4:])), parts(command))

    def check(self, payload: bytes) -> None:
        """It is refused, or it is a command that can be sent."""
        try:
            command = decode(payload)
        except RemoteProtocolError:
            return
        again = decode(encode(command, JSON)[4:])
        self.assertEqual(parts(again), parts(command))

    @examples()
    @given(st.binary(max_size=80))
    def test_anyBytes(self, data: bytes) -> None:
        """Any bytes, also as the header of either kind."""
        self.check(data)
        self.check(json_frame(data))
        self.check(binary_frame(data, data))

    @examples()
    @given(
        st.sampled_from([JSON, BINARY]),
        commands(INT16),
        st.integers(4, 1000),
        st.binary(max_size=3),
        st.integers(0, 3),
    )
    def test_mutated(
        self, kind: int, command: Command, at: int, other: bytes, cut: int
    ) -> None:
        """A frame with a few bytes replaced, removed or added."""
        payload = encode(command, kind)[4:]
        at = at % len(payload)
        self.check(payload[:at] + other + payload[at + cut :])
