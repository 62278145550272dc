"""Tests of L{rocketbroker.wire.hot}."""

from __future__ import annotations

import json

from msgspec.structs import asdict
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.command import JSON, RESPONSE, Command
from rocketbroker.wire.frames import decode, encode
from rocketbroker.wire.hot import (
    ACK_ANSWER,
    MAX_READY_HEADS,
    NOT_READ,
    PULL_ANSWER,
    SEND_ANSWER,
    SendHeader,
    frame_of,
    quoted,
    read_ack,
    read_long_send,
    read_pull,
    read_send,
    send_answer_start,
)
from tests.broker.rig import fields_for

SEND = {
    "a": "PG",
    "b": "T",
    "c": "TBW102",
    "d": "4",
    "e": "3",
    "f": "1",
    "g": "1700000000000",
    "h": "7",
    "i": "TAGS\x01A\x02",
    "j": "2",
    "k": "true",
    "m": "false",
    "n": "broker-a",
}

PULL = {
    "consumerGroup": "G",
    "topic": "T",
    "queueId": "1",
    "queueOffset": "42",
    "maxMsgNums": "32",
    "sysFlag": "6",
    "commitOffset": "40",
    "suspendTimeoutMillis": "15000",
    "subVersion": "1700000000000",
    "subscription": "A || B",
    "expressionType": "TAG",
}


def header(code: int, fields: dict[str, object], **more: object) -> bytes:
    """A JSON header with those fields."""
    top = {"code": code, "extFields": fields, "flag": 0, "opaque": 9, **more}
    return json.dumps(top).encode()


def header_of(command: Command) -> bytes:
    """The JSON header that our own encoder makes."""
    frame = encode(command, JSON)
    return frame[8 : 8 + int.from_bytes(frame[5:8], "big")]


def send_of(header: bytes) -> SendHeader | None:
    """The header of a send, None if it is not read."""
    try:
        return read_send(header)
    except NOT_READ:
        return None


class SendTests(SynchronousTestCase):
    """Headers of 310 and 320."""

    def test_fields(self) -> None:
        """Each letter is read as what it stands for, numbers from their text."""
        read = send_of(header_of(Command(310, dict(SEND), opaque=-5)))
        assert read is not None
        fields = read.extFields
        self.assertEqual((read.opaque, read.flag), (-5, 0))
        self.assertEqual(
            (fields.b, fields.c, fields.d, fields.e, fields.f, fields.g, fields.h),
            ("T", "TBW102", 4, 3, 1, 1700000000000, 7),
        )
        self.assertEqual(
            (fields.i, fields.j, fields.k, fields.m), ("TAGS\x01A\x02", 2, True, False)
        )

    def test_unquoted(self) -> None:
        """Numbers and truth values that are not quoted are read too (C++ client)."""
        read = send_of(header(310, {**SEND, "e": 3, "g": 1, "m": True}))
        assert read is not None
        self.assertEqual((read.extFields.e, read.extFields.g), (3, 1))
        self.assertTrue(read.extFields.m)

    def test_onlyRequired(self) -> None:
        """What a header may lack has the value that RocketMQ assumes."""
        few = {key: SEND[key] for key in "befgh"}
        read = send_of(header(310, dict(few)))
        assert read is not None
        self.assertEqual((read.extFields.i, read.extFields.j), ("", 0))
        self.assertFalse(read.extFields.m)

    def test_leftToOthers(self) -> None:
        """What is not read as RocketMQ reads it is left to the general way."""
        wrong: list[dict[str, object]] = [
            {"e": "00000003"},
            {"e": " 3"},
            {"e": ""},
            {"e": "x"},
            {"e": None},
            {"e": str(1 << 31)},
            {"e": str(-(1 << 31) - 1)},
            {"g": str(1 << 63)},
            {"m": "yes"},
            {"d": "x"},
            {"i": 5},
        ]
        for change in wrong:
            self.assertIsNone(send_of(header(310, {**SEND, **change})), change)

    def test_broken(self) -> None:
        """Neither cut nor garbled headers raise anything."""
        whole = header_of(Command(310, dict(SEND)))
        for size in range(len(whole)):
            self.assertIsNone(send_of(whole[:size]))
        for at in range(len(whole)):
            send_of(whole[:at] + b"\xff" + whole[at + 1 :])
        self.assertIsNone(send_of(whole.replace(b'"T"', b'"\\ud800"')))

    def test_noFields(self) -> None:
        """A header without extension fields, or with null, goes the general way."""
        self.assertIsNone(send_of(b'{"code":310,"opaque":1,"flag":0}'))
        self.assertIsNone(send_of(b'{"code":310,"extFields":null,"opaque":1}'))

    def test_noOpaque(self) -> None:
        """So does one without an opaque: there is nothing to answer to."""
        self.assertIsNone(send_of(header(310, dict(SEND)).replace(b"opaque", b"x")))


class LongSendTests(SynchronousTestCase):
    """Headers of 10."""

    def test_fields(self) -> None:
        """It is the same value as that of 310 with these fields."""
        long = header(10, dict(fields_for(10, SEND)), opaque=-5, flag=2)
        read, short = read_long_send(long), read_send(header(310, dict(SEND)))
        self.assertEqual((read.opaque, read.flag), (-5, 2))
        self.assertEqual(asdict(read.extFields), asdict(short.extFields))

    def test_onlyRequired(self) -> None:
        """Of each field it is known whether it may be missing, and what it is then."""
        for name in SEND:
            few = {key: text for key, text in SEND.items() if key != name}
            short = send_of(header(310, dict(few)))
            try:
                read = read_long_send(header(10, dict(fields_for(10, few))))
            except NOT_READ:
                self.assertIsNone(short, name)
                continue
            assert short is not None, name
            self.assertEqual(asdict(read.extFields), asdict(short.extFields))

    def test_letters(self) -> None:
        """Letters say nothing in request 10."""
        self.assertRaises(NOT_READ, read_long_send, header(10, dict(SEND)))


class PullTests(SynchronousTestCase):
    """Headers of 11."""

    def test_fields(self) -> None:
        """All fields are read, numbers from their text."""
        read = read_pull(header_of(Command(11, dict(PULL), opaque=77)))
        assert read is not None
        fields = read.extFields
        self.assertEqual(read.opaque, 77)
        self.assertEqual(
            (fields.consumerGroup, fields.topic, fields.queueId, fields.queueOffset),
            ("G", "T", 1, 42),
        )
        self.assertEqual(
            (fields.maxMsgNums, fields.sysFlag, fields.commitOffset), (32, 6, 40)
        )
        self.assertEqual(
            (fields.suspendTimeoutMillis, fields.subVersion), (15000, 1700000000000)
        )
        self.assertEqual(
            (fields.subscription, fields.expressionType), ("A || B", "TAG")
        )

    def test_paddedOffset(self) -> None:
        """An offset may have leading zeros, as Java's parseLong takes them."""
        for text, offset in (("00000032", 32), ("0", 0), (77, 77), (-1, -1)):
            read = read_pull(header(11, {**PULL, "queueOffset": text}))
            assert read is not None
            self.assertEqual(read.extFields.queueOffset, offset)

    def test_leftToOthers(self) -> None:
        """What is not read as RocketMQ reads it is left to the general way."""
        for text in ("", "-1", " 1", "1_0", "\u0661", "9" * 19, None, 1 << 63, "x"):
            read = read_pull(header(11, {**PULL, "queueOffset": text}))
            self.assertIsNone(read, text)

    def test_broken(self) -> None:
        """Neither cut nor garbled headers raise anything."""
        whole = header_of(Command(11, dict(PULL)))
        for size in range(len(whole)):
            self.assertIsNone(read_pull(whole[:size]))
        for at in range(len(whole)):
            read_pull(whole[:at] + b"\xff" + whole[at + 1 :])

    def test_response(self) -> None:
        """A response with code 11 (SLAVE_NOT_AVAILABLE) is not a pull."""
        self.assertIsNone(read_pull(header(11, dict(PULL), flag=RESPONSE)))


class AnswerTests(SynchronousTestCase):
    """The templates make what the general encoder would make."""

    def test_send(self) -> None:
        """The answer to a send decodes to all its fields."""
        start = send_answer_start(
            'a"b', True, 3, bytes([10, 0, 0, 1, 0, 0, 0x2A, 0x9F])
        )
        text = SEND_ANSWER % (start, 123456, 42, quoted(b"AB01"), -7)
        answer = decode(frame_of(text)[4:])
        self.assertEqual((answer.code, answer.opaque, answer.flag), (0, -7, RESPONSE))
        self.assertEqual(
            answer.ext,
            {
                "MSG_REGION": 'a"b',
                "TRACE_ON": "true",
                "queueId": "3",
                "msgId": "0A00000100002A9F000000000001E240",
                "queueOffset": "42",
                "transactionId": "AB01",
            },
        )
        self.assertEqual(answer.body, b"")

    def test_quoted(self) -> None:
        """An id that needs quoting is quoted, and one that is no UTF-8 replaced."""
        start = send_answer_start("r", False, 0, b"\0" * 8)
        for unique, text in (
            (b'a"\\b', 'a"\\b'),
            (b"\xff", "\ufffd"),
            ("ü\n".encode(), "ü\n"),
        ):
            header = SEND_ANSWER % (start, 0, 0, quoted(unique), 1)
            answer = decode(frame_of(header)[4:])
            assert answer.ext is not None
            self.assertEqual(answer.ext["transactionId"], text)

    def test_pull(self) -> None:
        """The answer to a pull decodes to its fields, remark and body."""
        text = PULL_ANSWER % (0, 1, 74, 5, 99, 1, 2, 8, b"FOUND")
        answer = decode(frame_of(text)[4:] + b"records")
        self.assertEqual(
            (answer.code, answer.opaque, answer.remark, answer.body),
            (0, 8, "FOUND", b"records"),
        )
        self.assertEqual(
            answer.ext,
            {
                "suggestWhichBrokerId": "1",
                "nextBeginOffset": "74",
                "minOffset": "5",
                "maxOffset": "99",
                "topicSysFlag": "1",
                "groupSysFlag": "2",
            },
        )

    def test_longHeader(self) -> None:
        """A header for which no head is ready is framed all the same."""
        start = send_answer_start("r" * MAX_READY_HEADS, True, 0, b"\0" * 8)
        answer = decode(frame_of(SEND_ANSWER % (start, 1, 2, b"U", 3))[4:])
        assert answer.ext is not None
        self.assertEqual(answer.ext["MSG_REGION"], "r" * MAX_READY_HEADS)


class AckTests(SynchronousTestCase):
    """Headers of 200051."""

    def test_fields(self) -> None:
        """Each field is read, numbers from their text; others are left out."""
        ext = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": "3",
            "extraInfo": "0 1 2 3 0 b 3 9",
            "offset": "9",
            "bname": "b",
        }
        read = read_ack(header_of(Command(200051, ext, opaque=-5)))
        fields = read.extFields
        self.assertEqual((read.opaque, read.flag), (-5, 0))
        self.assertEqual((fields.consumerGroup, fields.topic), ("G", "T"))
        self.assertEqual((fields.queueId, fields.offset), (3, 9))
        self.assertEqual(fields.extraInfo, "0 1 2 3 0 b 3 9")
        del ext["offset"]
        with self.assertRaises(NOT_READ):
            read_ack(header_of(Command(200051, ext)))

    def test_answer(self) -> None:
        """The template is what the general encoder makes."""
        command = Command(0, opaque=-5, flag=RESPONSE)
        self.assertEqual(frame_of(ACK_ANSWER % -5), encode(command, JSON))
