"""Frames that no client sends: real requests of all codes, changed at random.

A change leaves the frame's length right or not. Where it does not, or where a server
closes the connection because of it, nothing behind the frame is read any more; so such
a frame is the last one of its connection (L{Mutant.is_last}).
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from rocketbroker.records.batches import encode_part
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import BINARY, JSON, Command
from rocketbroker.wire.frames import encode
from rocketbroker.wire.headers import admin, client, namesrv, pull, send
from rocketbroker.wire.headers.header import Header

#: Texts of numbers that have broken readers before.
NUMBERS: Final = (
    *("0", "1", "-1", "4", "32", "127", "128", "65535", "2147483647", "-2147483648"),
    *("2147483648", "9223372036854775807", "-9223372036854775808", "1e9", "0x10"),
    *("99999999999999999999", "NaN", "", " 1", "\u0661", "true", "null", "-0"),
)

#: Other texts: what separates, what escapes, and what is long.
TEXTS: Final = (
    *("", " ", "*", "a||b", "a > 1 AND b IS NULL", "%RETRY%", "%LMQ%x", "@", "a@b@c"),
    *(
        "../../x",
        "\x00",
        "\x01\x02",
        "ü",
        "\U0001f600",
        "{}",
        "[]",
        '"',
        "\\",
        "x" * 300,
    ),
)

#: Fields whose value is no number although its name or type does not say so.
SPECIAL: Final = {
    "a": "{group}",
    "b": "{topic}",
    "c": "TBW102",
    "defaultTopic": "TBW102",
    "topicFilterType": "SINGLE_TAG",
    "defaultTopicQueueNums": "4",
    "subscription": "*",
    "expression": "*",
    "exp": "*",
    "expressionType": "TAG",
    "expType": "TAG",
    "i": "UNIQ_KEY\x01K\x02KEYS\x01k\x02TAGS\x01t\x02",
    "properties": "UNIQ_KEY\x01K\x02WAIT\x01true\x02",
    "attributes": "+message.type=NORMAL",
    "clientId": "{group}-client",
    "clientID": "{group}-client",
    "perm": "6",
    "d": "4",
    "readQueueNums": "4",
    "writeQueueNums": "4",
    "maxMsgNums": "32",
    "l": "16",
    "maxNum": "32",
    "invisibleTime": "1000",
    "pollTime": "100",
    "suspendTimeoutMillis": "100",
    "extraInfo": "0 1700000000000 60000 0 0 broker 0 0",
    "maxTime": "9223372036854775807",
    "endTimestamp": "9223372036854775807",
}


class Mutant(NamedTuple):
    """One frame.

    @ivar data: its bytes.
    @ivar is_last: whether what follows on its connection may not be read.
    """

    data: bytes
    is_last: bool


class Frames:
    """Endless frames, the same for the same seed.

    @ivar made: how many were made, by what was done to them.
    """

    def __init__(
        self, seed: int, topic: str, group: str, codes: Iterable[int] = RequestCode
    ) -> None:
        """
        @param topic: all requests are about it, unless a change says otherwise.
        @param group: and about it.
        @param codes: those that the server serves.
        """
        self._dice = random.Random(seed)
        self._corpus = list(corpus(codes, topic, group))
        self.made: dict[str, int] = {}
        changes = (
            *((self._whole, 3), (self._keys, 6), (self._body, 6), (self._code, 1)),
            *((self._flipped, 4), (self._cut, 2), (self._spliced, 3)),
            *((self._header_length, 1), (self._length, 1), (self._broken_off, 1)),
        )
        self._changes = [change for change, _ in changes]
        self._weights = [weight for _, weight in changes]

    def next(self) -> Mutant:
        """One more frame."""
        (change,) = self._dice.choices(self._changes, self._weights)
        name = change.__name__.removeprefix("_")
        self.made[name] = self.made.get(name, 0) + 1
        return change()

    def burst(self, most: int) -> list[bytes]:
        """Frames for one connection; only the last may be one behind which nothing is
        read."""
        found: list[bytes] = []
        for _ in range(self._dice.randint(1, most)):
            mutant = self.next()
            found.append(mutant.data)
            if mutant.is_last:
                break
        return found

    def _command(self) -> Command:
        """A request, its opaque and now and then its flag at random."""
        code, ext, body = self._dice.choice(self._corpus)
        dice = self._dice
        flag = dice.choice((0, 0, 0, 0, 0, 2, 1, 3, 4, -1))
        return Command(code, dict(ext), body, opaque=dice.getrandbits(31), flag=flag)

    def _frame(self) -> bytes:
        return self._encoded(self._command())

    def _encoded(self, command: Command) -> bytes:
        """Its frame, of either kind; a binary one has a code of 16 bits."""
        is_binary = self._dice.random() < 0.2 and command.code < 1 << 15
        return encode(command, BINARY if is_binary else JSON)

    def _whole(self) -> Mutant:
        """A request as it is."""
        return Mutant(self._frame(), False)

    def _keys(self) -> Mutant:
        """Fields of the header renamed, left out, doubled, or with another value."""
        dice, command = self._dice, self._command()
        ext: dict[str, Any] = command.ext or {}
        for _ in range(dice.randint(1, 3)):
            if not ext:
                break
            key = dice.choice(list(ext))
            what = dice.randrange(4)
            if what == 0:
                ext[key + dice.choice("sX_ ")] = ext.pop(key)
            elif what == 1:
                del ext[key]
            else:
                ext[key] = dice.choice(NUMBERS if what == 2 else TEXTS)
        command.ext = ext
        return Mutant(self._encoded(command), False)

    def _body(self) -> Mutant:
        """A body of JSON with another value somewhere, or any other body changed."""
        dice, command = self._dice, self._command()
        try:
            value = json.loads(command.body)
        except ValueError:
            command.body = self._shaken(command.body)
        else:
            holder = {"": value}
            self._replace(holder, dice.randrange(12))
            command.body = json.dumps(holder[""]).encode()
        return Mutant(encode(command, JSON), False)

    def _replace(self, holder: Any, left: int) -> None:
        """Replace something inside, so many steps from here at the most."""
        dice = self._dice
        if not holder:
            return
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        key = dice.choice(keys)
        inner = holder[key]
        if left and isinstance(inner, dict | list) and inner:
            self._replace(inner, left - 1)
        elif isinstance(holder, dict) and dice.random() < 0.3:
            holder[f"{key}X"] = holder.pop(key)
            holder.setdefault("", None)
        else:
            holder[key] = dice.choice(
                (*NUMBERS, *TEXTS, None, [], {}, 1 << 70, -1, 0.5)
            )

    def _code(self) -> Mutant:
        """A request with any code."""
        command = self._command()
        command.code = self._dice.choice(
            (self._dice.randrange(4000), self._dice.getrandbits(31), -1)
        )
        return Mutant(encode(command, JSON), False)

    def _shaken(self, data: bytes) -> bytes:
        """Bytes of which some bits are flipped."""
        changed = bytearray(data)
        for _ in range(self._dice.randint(1, 8) if changed else 0):
            changed[self._dice.randrange(len(changed))] ^= 1 << self._dice.randrange(8)
        return bytes(changed)

    def _flipped(self) -> Mutant:
        """Bits flipped anywhere behind the length."""
        return Mutant(framed(self._shaken(self._frame()[4:])), True)

    def _cut(self) -> Mutant:
        """The rest is missing, and the length says so."""
        payload = self._frame()[4:]
        return Mutant(framed(payload[: self._dice.randrange(len(payload))]), True)

    def _spliced(self) -> Mutant:
        """The begin of one frame and the end of another."""
        first, second = self._frame()[4:], self._frame()[4:]
        begin = first[: self._dice.randrange(len(first))]
        return Mutant(framed(begin + second[self._dice.randrange(len(second)) :]), True)

    def _header_length(self) -> Mutant:
        """Another length of the header."""
        payload = self._frame()[4:]
        length = self._dice.choice((0, 1, len(payload), 0xFFFFFF, len(payload) // 2))
        word = payload[:1] + length.to_bytes(3, "big")
        return Mutant(framed(word + payload[4:]), True)

    def _length(self) -> Mutant:
        """Another length of the frame."""
        payload = self._frame()[4:]
        length = self._dice.choice(
            (0, -1, 3, 1 << 24, (1 << 31) - 1, -(1 << 31), len(payload) - 1)
        )
        return Mutant(struct.pack(">i", length) + payload, True)

    def _broken_off(self) -> Mutant:
        """The connection ends in the middle of the frame."""
        data = self._frame()
        return Mutant(data[: self._dice.randrange(1, len(data))], True)


def framed(payload: bytes) -> bytes:
    """The frame with this payload."""
    return struct.pack(">i", len(payload)) + payload


def corpus(
    codes: Iterable[int], topic: str, group: str
) -> Iterator[tuple[int, dict[str, str], bytes]]:
    """Requests of these codes: code, fields, body.

    Each has the fields of all headers, so that none lacks one that it needs, or those
    that most need. None names a broker or a cluster that there is, nor a setting: what
    cannot be undone is done to others.
    """
    wide = dict(all_fields(topic, group))
    names = ("topic", "consumerGroup", "producerGroup", "group", "queueId", "clientID")
    narrow = {name: wide[name] for name in names}
    narrow |= {"queueOffset": "0", "maxMsgNums": "32", "sysFlag": "4"}
    narrow |= {"commitOffset": "0", "suspendTimeoutMillis": "100", "subscription": "*"}
    by_code = bodies(topic, group)
    others = [b"", b"noSuchSetting=1\n"]
    for code in codes:
        for body in by_code.get(code, others):
            yield code, wide, body
            yield code, narrow, body


def all_fields(topic: str, group: str) -> Iterator[tuple[str, str]]:
    """The fields of all headers that there are, with values that make sense."""
    for module in (admin, client, namesrv, pull, send):
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, Header):
                for field in msgspec.structs.fields(each):
                    yield field.encode_name, value_of(field, topic, group)


def value_of(field: msgspec.structs.FieldInfo, topic: str, group: str) -> str:
    """A value for a field, by its name and type."""
    name = field.encode_name
    if name in SPECIAL:
        return SPECIAL[name].format(topic=topic, group=group)
    kind, low = str(field.type), name.lower()
    if "bool" in kind:
        return "false"
    if "int" in kind.lower():
        return "0"
    if "group" in low:
        return group
    if "topic" in low:
        return topic
    if "addr" in low:
        return "127.0.0.1:9"
    return f"no-{low}"


def bodies(topic: str, group: str) -> dict[int, list[bytes]]:
    """The bodies of requests that need one."""
    parts = (encode_part(0, b"%d" % n, b"UNIQ_KEY\x01%d\x02" % n) for n in range(4))
    plain = [b"body", b""]
    return {
        RequestCode.SEND_MESSAGE: plain,
        RequestCode.SEND_MESSAGE_V2: plain,
        RequestCode.SEND_BATCH_MESSAGE: [b"".join(parts)],
        RequestCode.SEND_REPLY_MESSAGE_V2: plain,
        **{
            code: [json.dumps(value).encode(), b""]
            for table in (of_clients(topic, group), of_operators(topic, group))
            for code, value in table.items()
        },
    }


def of_clients(topic: str, group: str) -> dict[int, object]:
    """What clients send as JSON."""
    queue = {"brokerName": "no-broker", "queueId": 0, "topic": topic}
    lock = {"clientId": "c", "consumerGroup": group, "mqSet": [queue]}
    subscription = {
        "classFilterMode": False,
        "codeSet": [97],
        "expressionType": "TAG",
        "subString": "a",
        "subVersion": 1,
        "tagsSet": ["a"],
        "topic": topic,
    }
    sql = {**subscription, "expressionType": "SQL92", "subString": "a > 1 OR b = 'x'"}
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": [subscription],
        "unitMode": False,
    }
    heart = {
        "clientID": f"{group}-client",
        "consumerDataSet": [consumer, {**consumer, "subscriptionDataSet": [sql]}],
        "producerDataSet": [{"groupName": group}],
        "heartbeatFingerprint": 0,
        "withoutSub": False,
    }
    ack: dict[str, object] = {"c": group, "t": topic, "r": "0", "so": 0, "rq": 0}
    ack |= {"q": 0, "pt": 1700000000000, "it": 60000, "b": [1]}
    assignment = {"topic": topic, "consumerGroup": group, "clientId": "c"}
    return {
        RequestCode.HEART_BEAT: heart,
        RequestCode.CHECK_CLIENT_CONFIG: {**heart, "group": group},
        RequestCode.LOCK_BATCH_MQ: lock,
        RequestCode.UNLOCK_BATCH_MQ: lock,
        RequestCode.BATCH_ACK_MESSAGE: {"brokerName": "no-broker", "acks": [ack]},
        RequestCode.QUERY_ASSIGNMENT: assignment,
    }


def of_operators(topic: str, group: str) -> dict[int, object]:
    """What operators and brokers send as JSON."""
    topic_config = {
        "topicName": topic,
        "readQueueNums": 4,
        "writeQueueNums": 4,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": False,
        "attributes": {},
    }
    group_config = {
        "groupName": group,
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "consumeBroadcastEnable": True,
        "retryQueueNums": 1,
        "retryMaxTimes": 16,
        "attributes": {},
    }
    mapped = {"gen": 0, "queueId": 0, "bname": "no-broker", "logicOffset": 0}
    mapped |= {"startOffset": 0, "endOffset": -1, "timeOfStart": -1, "timeOfEnd": -1}
    mapping = {"topic": topic, "bname": "no-broker", "totalQueues": 1, "epoch": 1}
    mapping |= {"scope": "__global__", "hostedQueues": {"0": [mapped]}}
    version = {"counter": 1, "stateVersion": 0, "timestamp": 1}
    table = {"dataVersion": version, "topicConfigTable": {topic: topic_config}}
    registration = {"topicConfigSerializeWrapper": table, "filterServerList": []}
    mode = {"topic": topic, "consumerGroup": group, "mode": "POP"}
    return {
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: {"topicConfigList": [topic_config]},
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: group_config,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: {
            "groupConfigList": [group_config]
        },
        RequestCode.SET_MESSAGE_REQUEST_MODE: mode,
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: mapping,
        RequestCode.REGISTER_BROKER: registration,
        RequestCode.QUERY_DATA_VERSION: version,
    }
