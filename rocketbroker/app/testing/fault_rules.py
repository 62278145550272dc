# -*- test-case-name: tests.app.testing.test_fault_rules -*-
"""Fault rules: what is to fail, for whom, how often, and what they have met.

As JSON, where all but C{action} may be left out::

    {"action": "code",     what happens: L{ACTIONS}
     "topic": "T",         of the request; all four must fit
     "group": "G",         of a consumer or producer
     "client": "ID",       its id as heartbeats say it, or its address and port
     "request": ["send"],  codes, their names, or one of L{FAMILIES}
     "code": 14,           of the answer, for "code"
     "remark": "text",     of the answer, instead of RocketMQ's
     "ms": 500,            waits so long first
     "times": 1,           after so many hits it meets nothing any more
     "owner": "test_x"}    so that those of one test can be removed

and L{FaultRule.to_json} has C{id}, C{hits} and the last hits besides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, final

import attrs

from rocketbroker.errors import FAQ, InvalidParameter
from rocketbroker.wire.codes import RequestCode, ResponseCode

#: Request codes that belong together, by what a user calls them.
FAMILIES: Final = {
    "send": frozenset({10, 310, 320}),
    "pull": frozenset({11, 361}),
    "pop": frozenset({200050}),
    "ack": frozenset({200051, 200151}),
    "heartbeat": frozenset({34}),
}
_SENDS, _PULLS = FAMILIES["send"], FAMILIES["pull"]
_DELIVERIES = _PULLS | FAMILIES["pop"]

#: What can happen, and to which requests; None: to any.
ACTIONS: Final[Mapping[str, frozenset[int] | None]] = {
    "code": None,
    "delay": None,
    "drop": None,
    "cut": None,
    "busy": None,
    "flush_timeout": _SENDS,
    "slave_timeout": _SENDS,
    "slave_missing": _SENDS,
    "corrupt": _DELIVERIES,
    "duplicate": _SENDS | _PULLS,
}

#: What the actions are about that have a default of their own.
_USUALLY: Final = {"duplicate": _SENDS}

#: The codes of the answers to messages that are stored all the same
#: (docs/facts/broker.md 10.5).
STORED: Final = {
    "flush_timeout": ResponseCode.FLUSH_DISK_TIMEOUT,
    "slave_timeout": ResponseCode.FLUSH_SLAVE_TIMEOUT,
    "slave_missing": ResponseCode.SLAVE_NOT_AVAILABLE,
}

#: The remark of a broker that is busy (docs/facts/broker.md 7).
BUSY: Final = "[OVERLOAD]system busy, start flow control for a while"

#: RocketMQ's remarks of codes that have one (docs/facts/broker.md 7, 10, 12).
REMARKS: Final[Mapping[int, str]] = {
    ResponseCode.SYSTEM_ERROR: "UNKNOWN_ERROR",
    ResponseCode.SYSTEM_BUSY: BUSY,
    ResponseCode.MESSAGE_ILLEGAL: "the message is illegal, maybe msg body or "
    "properties length not matched. msg body length limit 4194304B, msg properties "
    "length limit 32KB.",
    ResponseCode.SERVICE_NOT_AVAILABLE: "service not available now. It may be caused "
    "by one of the following reasons: the broker's disk is full [CL:  0.99 CQ:  0.99 "
    "INDEX:  0.99], messages are put to the slave, message store has been shut down, "
    "etc.",
    ResponseCode.NO_PERMISSION: "the broker[127.0.0.1] sending message is forbidden",
    ResponseCode.TOPIC_NOT_EXIST: "topic[{topic}] not exist, apply first please!"
    f"{FAQ}",
    ResponseCode.SUBSCRIPTION_NOT_EXIST: f"the consumer's subscription not exist{FAQ}",
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: "subscription group [{group}] does not "
    f"exist, {FAQ}",
}

#: How many of the last hits of a rule are kept.
MAX_HITS: Final = 20

#: How many rules there may be: each is looked at for each request.
MAX_RULES: Final = 1000


class Place(NamedTuple):
    """What a request is about, as rules see it.

    @ivar groups: a heartbeat may have several.
    @ivar clients: the ids of its client, and its address and port.
    """

    code: int
    topic: str | None
    groups: frozenset[str]
    clients: frozenset[str]


@final
@attrs.define(kw_only=True, eq=False)
class FaultRule:
    """One rule.

    @ivar id: its number, by which it can be removed.
    @ivar codes: the request codes; None: all.
    @ivar hits: how many requests it has met.
    @ivar last: the last of them.
    """

    id: int
    action: str
    codes: frozenset[int] | None = None
    topic: str | None = None
    group: str | None = None
    client: str | None = None
    code: int = 0
    remark: str | None = None
    ms: int = 0
    times: int | None = None
    owner: str | None = None
    hits: int = 0
    last: deque[dict[str, object]] = attrs.field(factory=lambda: deque(maxlen=MAX_HITS))

    @property
    def is_over(self) -> bool:
        """Whether it meets nothing any more."""
        return self.times is not None and self.hits >= self.times

    def fits(self, place: Place) -> bool:
        """Whether it is about that request."""
        return (
            (self.codes is None or place.code in self.codes)
            and (self.topic is None or self.topic == place.topic)
            and (self.group is None or self.group in place.groups)
            and (self.client is None or self.client in place.clients)
        )

    def hit(self, place: Place, wall_ms: int) -> None:
        """Count a request that it has met."""
        self.hits += 1
        row: dict[str, object] = {
            "time": wall_ms,
            "request": place.code,
            "topic": place.topic,
            "group": min(place.groups, default=None),
            "client": min(place.clients, default=None),
        }
        self.last.append(row)

    def words(self, place: Place) -> str | None:
        """The remark of its answer."""
        remark = self.remark
        if remark is None:
            remark = REMARKS.get(self.code)
            group = min(place.groups, default="")
            if remark is not None:
                remark = remark.replace("{topic}", place.topic or "")
                remark = remark.replace("{group}", group)
        return remark

    def to_json(self) -> dict[str, object]:
        """The rule as it is listed."""
        return {
            "id": self.id,
            "action": self.action,
            "topic": self.topic,
            "group": self.group,
            "client": self.client,
            "request": None if self.codes is None else sorted(self.codes),
            "code": self.code or None,
            "remark": self.remark,
            "ms": self.ms,
            "times": self.times,
            "owner": self.owner,
            "hits": self.hits,
            "lastHits": list(self.last),
        }


def rule_of(number: int, value: object) -> FaultRule:
    """The rule that JSON describes.

    @raise InvalidParameter: it describes none; one sentence.
    """
    if not isinstance(value, dict):
        raise InvalidParameter("A fault rule is an object, with an action.")
    fields: dict[str, Any] = {**value}
    action = fields.pop("action", None)
    if action not in ACTIONS:
        raise InvalidParameter(
            f"There is no action {action!r} of faults: it is one of "
            f"{', '.join(ACTIONS)}."
        )
    rule = FaultRule(id=number, action=action)
    requests = fields.pop("request", None)
    for key, kind, least in _FIELDS:
        found = fields.pop(key, None)
        if found is None:
            continue
        if type(found) is not kind or (isinstance(found, int) and found < least):
            wanted = "a text" if kind is str else f"a whole number, {least} at least"
            raise InvalidParameter(f"{key} cannot be {found!r}: it must be {wanted}.")
        setattr(rule, key, found)
    if fields:
        raise InvalidParameter(f"A fault rule has no {min(fields)}.")
    _complete(rule, codes_of(requests))
    return rule


#: The fields of a rule, with the type and the least value of each.
_FIELDS: Final = (
    ("topic", str, 0),
    ("group", str, 0),
    ("client", str, 0),
    ("remark", str, 0),
    ("owner", str, 0),
    ("code", int, 1),
    ("ms", int, 1),
    ("times", int, 1),
)


def _complete(rule: FaultRule, codes: frozenset[int] | None) -> None:
    """Set the codes of a rule, and what follows from its action."""
    action, possible = rule.action, ACTIONS[rule.action]
    if codes is not None and possible is not None and not codes <= possible:
        wrong = ", ".join(map(str, sorted(codes - possible)))
        raise InvalidParameter(
            f"{action} is not for the requests {wrong}: it is for those of "
            f"{', '.join(map(str, sorted(possible)))}."
        )
    rule.codes = _USUALLY.get(action, possible) if codes is None else codes
    if action == "busy":
        rule.code = rule.code or ResponseCode.SYSTEM_BUSY
    if action == "code" and not rule.code:
        raise InvalidParameter("The action code needs a code, which is answered.")
    if action == "delay" and not rule.ms:
        raise InvalidParameter("The action delay needs ms, the time to wait.")


def codes_of(value: object) -> frozenset[int] | None:
    """The request codes that C{request} names: one, or a list; None: all.

    @raise InvalidParameter: it is no request; one sentence.
    """
    if value is None:
        return None
    found: set[int] = set()
    for each in value if isinstance(value, list) else [value]:
        if type(each) is int or (isinstance(each, str) and each.isdecimal()):
            found.add(int(each))
        elif isinstance(each, str) and each.lower() in FAMILIES:
            found |= FAMILIES[each.lower()]
        elif isinstance(each, str) and each.upper() in RequestCode.__members__:
            found.add(RequestCode[each.upper()].value)
        else:
            raise InvalidParameter(
                f"There is no request {each!r}: give a code, its name, or one of "
                f"{', '.join(FAMILIES)}."
            )
    return frozenset(found)
