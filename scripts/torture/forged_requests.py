"""Requests that a broker with access control must refuse, for auth_frames.py.

Each of them would do something if its signature and its user were in order.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Final

from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.wire.command import BINARY, JSON, ONEWAY, Command

#: The users: one that may do all, one that may do nothing, one that is disabled.
ROOT: Final = Credentials("root", "root-secret")
NOBODY: Final = Credentials("nobody", "nobody-secret")
RETIRED: Final = Credentials("retired", "retired-secret")

#: One request in so many wants no answer.
PER_ONEWAY: Final = 8

TOPIC: Final = "Victim"
PLACE: Final = {"topic": TOPIC, "queueId": "0", "consumerGroup": "thieves"}
SEND: Final = {
    "a": "thieves",
    "b": TOPIC,
    "c": "TBW102",
    "d": "4",
    "e": "0",
    "f": "0",
    "g": "1700000000000",
    "h": "0",
    "i": "",
    "j": "0",
    "k": "false",
    "m": "false",
}
PULL: Final = {
    **PLACE,
    "queueOffset": "0",
    "maxMsgNums": "1",
    "sysFlag": "4",
    "commitOffset": "0",
    "suspendTimeoutMillis": "0",
    "subscription": "*",
    "subVersion": "0",
}
NEW_TOPIC: Final = {
    "topic": "Stolen",
    "defaultTopic": "TBW102",
    "readQueueNums": "1",
    "writeQueueNums": "1",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
}
HEARTBEAT: Final = {
    "clientID": "thief",
    "producerDataSet": [{"groupName": "thieves"}],
    "consumerDataSet": [],
}
THIEF: Final = {"username": "thief", "password": "secret", "userType": "Super"}

#: What is asked: code, fields, body.
KINDS: Final[tuple[tuple[int, dict[str, str], bytes], ...]] = (
    (310, SEND, b"a body"),
    (11, PULL, b""),
    (15, {**PLACE, "commitOffset": "0"}, b""),
    (17, NEW_TOPIC, b""),
    (25, {}, b"fileReservedTime=3"),
    (30, {"topic": TOPIC, "queueId": "0"}, b""),
    (34, {}, json.dumps(HEARTBEAT).encode()),
    (200, {}, json.dumps({"groupName": "thieves"}).encode()),
    (3001, {"username": "thief"}, json.dumps(THIEF).encode()),
    (3002, {"username": "nobody"}, json.dumps({"userType": "Super"}).encode()),
    (3005, {}, b""),
)

#: Those of them that change nothing: a pull makes its group.
HARMLESS: Final = (30, 3005)


class Forger:
    """Makes requests that must be refused.

    @ivar made: how many, by the way in which they are broken.
    """

    def __init__(self, seed: int) -> None:
        self.made: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._opaque = itertools.count(1)
        self._ways: tuple[Callable[[Command], None], ...] = (
            *(self._wrong_secret, self._no_signature, self._cut_off, self._empty),
            *(self._field_changed, self._field_added, self._body_changed),
            *(self._unknown_user, self._no_user, self._other_user, self._nothing),
            *(self._bit_flipped, self._of_another, self._retired, self._odd_user),
            self._may_not,
        )

    def one(self) -> tuple[Command, int]:
        """A request, and the serialization of its header."""
        code, fields, body = self._random.choice(KINDS)
        command = Command(code, dict(fields), body, opaque=next(self._opaque))
        command.ext = sign(command.ext, body, ROOT)
        way = self._random.choice(self._ways)
        way(command)
        self.made[way.__name__.strip("_")] += 1
        if not self._random.randrange(PER_ONEWAY):
            command.flag |= ONEWAY
        return command, self._random.choice((JSON, BINARY))

    def _wrong_secret(self, command: Command) -> None:
        self._sign(command, Credentials(ROOT.access_key, "root-secreu"))

    def _no_signature(self, command: Command) -> None:
        del _ext(command)["Signature"]

    def _cut_off(self, command: Command) -> None:
        given = _ext(command)["Signature"]
        _ext(command)["Signature"] = given[: self._random.randrange(len(given))]

    def _empty(self, command: Command) -> None:
        _ext(command)["Signature"] = ""

    def _field_changed(self, command: Command) -> None:
        names = [name for name in _ext(command) if name != "Signature"]
        _ext(command)[self._random.choice(names)] += "0"

    def _field_added(self, command: Command) -> None:
        _ext(command)["zone"] = "0"

    def _body_changed(self, command: Command) -> None:
        command.body = bytes(command.body) + b" "

    def _unknown_user(self, command: Command) -> None:
        self._sign(command, Credentials("somebody", ROOT.secret_key))

    def _no_user(self, command: Command) -> None:
        del _ext(command)["AccessKey"]

    def _other_user(self, command: Command) -> None:
        """The signature of another user who is there."""
        self._sign(command, NOBODY)
        _ext(command)["AccessKey"] = ROOT.access_key

    def _nothing(self, command: Command) -> None:
        _ext(command).pop("AccessKey")
        _ext(command).pop("Signature")

    def _bit_flipped(self, command: Command) -> None:
        given = _ext(command)["Signature"]
        at = self._random.randrange(len(given))
        other = chr(ord(given[at]) ^ 1)
        _ext(command)["Signature"] = given[:at] + other + given[at + 1 :]

    def _of_another(self, command: Command) -> None:
        """The right signature of another request."""
        other = sign({"topic": "Other"}, b"", ROOT)
        _ext(command)["Signature"] = other["Signature"]

    def _retired(self, command: Command) -> None:
        self._sign(command, RETIRED)

    def _odd_user(self, command: Command) -> None:
        odd = ("", " root", "root ", "ROOT", "root\0", "r\u00f6\u00f6t", "\U0001f600")
        self._sign(command, Credentials(self._random.choice(odd), ROOT.secret_key))

    def _may_not(self, command: Command) -> None:
        """All is right, but that the user may do nothing; what needs no permission in
        RocketMQ's rules is signed by nobody."""
        if command.code in (25, 34, 200):
            self._nothing(command)
        else:
            self._sign(command, NOBODY)

    def _sign(self, command: Command, credentials: Credentials) -> None:
        fields = dict(_ext(command))
        fields.pop("Signature", None)
        command.ext = sign(fields, bytes(command.body), credentials)


def _ext(command: Command) -> dict[str, str]:
    assert command.ext is not None
    return command.ext
