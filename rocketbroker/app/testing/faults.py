# -*- test-case-name: tests.app.testing.test_faults -*-
"""Faults: what stands before the responders of a port, and fails where a rule says so.

The port of a broker in testing mode has a table of its own (L{Faults.front}), whose
responders look for a rule first and then ask those of the broker. It has no hot
responders: each request goes the general way, where its answer passes by here. So the
tables of the broker, and a broker without testing mode, know nothing of it.

What becomes of a request that a rule meets:

  - I{code}, I{busy}: it is not done, and answered with a code and RocketMQ's remark;
  - I{delay}: it is done later; every other action takes C{ms} as well;
  - I{drop}: it is not done, and not answered; I{cut}: nor is any other on its
    connection, which is closed;
  - I{flush_timeout}, I{slave_timeout}, I{slave_missing}: the message is stored, and the
    answer has its place and one of these codes (C{docs/facts/broker.md} 10.5);
  - I{corrupt}: the bodies of the messages that are delivered are wrong, and their
    checksums are not;
  - I{duplicate} of a send: it is stored twice, as when a producer had no answer and has
    sent again: one id, two places. Of a pull: the next one of the group in that queue
    is answered PULL_OFFSET_MOVED, back to where this one began, as if the group's
    offset had been reset. It waits for L{AGAIN_SECONDS}: a consumer that has not begun
    with a message when its queue is reset has it once.

The first rule that fits is the one that counts. The last three lines, but for sends
that are stored twice, are about answers: they are looked at when there is one, and it
is a success. So a pull that was held before a rule came is met by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple, cast, final

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from rocketbroker.app.testing.fault_rules import (
    FAMILIES,
    MAX_RULES,
    STORED,
    FaultRule,
    Place,
    rule_of,
)
from rocketbroker.errors import InvalidParameter, RocketbrokerError
from rocketbroker.records.record import decode
from rocketbroker.remoting.interfaces import Answer, IConnection, Responder
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire import fastjson
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import ONEWAY, Command

#: How long the pull waits that sends a consumer back, in seconds.
AGAIN_SECONDS: Final = 0.2

#: Where requests have topic and group, the first that is there; sends in their short
#: form have letters.
_TOPICS: Final = ("topic", "originTopic")
_GROUPS: Final = ("consumerGroup", "producerGroup", "group")
_CLIENTS: Final = ("clientId", "clientID")
_SHORT: Final = frozenset({RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE})

#: The length of a record before its body, without its two addresses.
_HEAD: Final = 72

#: Requests whose answers rules may change.
_CHANGED: Final = FAMILIES["send"] | FAMILIES["pull"] | FAMILIES["pop"]


class _Pulled(NamedTuple):
    """Where a pull begins."""

    group: str
    topic: str
    queue: str
    offset: str


@final
class Faults:
    """The rules of a broker, and what they meet.

    @ivar rules: by number, the oldest first.
    """

    def __init__(self, clock: IReactorTime, wall_ms: Callable[[], int]) -> None:
        """
        @param clock: the reactor: delays go by the machine's time.
        @param wall_ms: the broker's time of day, for the list of hits.
        """
        self.rules: dict[int, FaultRule] = {}
        self._clock = clock
        self._wall_ms = wall_ms
        self._number = 0
        self._clients: dict[IConnection, tuple[str, frozenset[str]]] = {}
        #: Pulls that are sent back: the answer to the pull whose messages come again.
        self._back: dict[_Pulled, tuple[_Pulled, dict[str, str]]] = {}
        #: Pulls whose messages come again, which they do once.
        self._again: set[_Pulled] = set()

    def front(
        self, table: ResponderTable, before: Callable[[Command], None]
    ) -> ResponderTable:
        """The table of a port whose requests pass by here.

        @param table: the broker's, which is complete but for hot responders.
        @param before: called with each request, first of all.
        """
        front = ResponderTable()
        front.latencies = table.latencies
        front.limit_waits(table.max_waits)
        for code in table.responders:
            front.register(code, partial(self._respond, table.responders, before))
        return front

    # The rules.

    def respond(self, connection: IConnection, request: Command) -> Command:
        """Request 31010: add, remove or list rules (L{fault_rules
        <rocketbroker.app.testing.fault_rules>})."""
        try:
            asked = fastjson.loads(request.body or b"{}")
        except RocketbrokerError as error:
            raise InvalidParameter(f"The body is no JSON: {error}.") from error
        if not isinstance(asked, dict) or len(asked) > 1:
            raise InvalidParameter(
                'The body is {"add": RULE}, {"clear": WHICH} or {"list": WHICH}.'
            )
        found: dict[str, Any]
        if "add" in asked:
            found = {"id": self._add(asked["add"])}
        elif "clear" in asked:
            chosen = list(self._chosen(asked["clear"]))
            for rule in chosen:
                del self.rules[rule.id]
            found = {"cleared": len(chosen)}
        else:
            chosen = list(self._chosen(asked.get("list", {})))
            found = {"rules": [rule.to_json() for rule in chosen]}
        return Command(ResponseCode.SUCCESS, body=msgspec.json.encode(found))

    def _add(self, value: object) -> int:
        if len(self.rules) >= MAX_RULES:
            raise InvalidParameter(f"There are {MAX_RULES} rules: remove some.")
        rule = rule_of(self._number + 1, value)
        self._number = rule.id
        self.rules[rule.id] = rule
        return rule.id

    def _chosen(self, value: object) -> Iterator[FaultRule]:
        """The rules of an owner, or that with a number; all, if neither is named."""
        if not isinstance(value, dict) or value.keys() - {"id", "owner"}:
            raise InvalidParameter("Rules are chosen by their id or their owner.")
        for rule in list(self.rules.values()):
            is_it = value.get("id") in (None, rule.id)
            if is_it and value.get("owner") in (None, rule.owner):
                yield rule

    # Requests.

    def _respond(
        self,
        responders: dict[int, Responder],
        before: Callable[[Command], None],
        connection: IConnection,
        request: Command,
    ) -> Answer:
        before(request)
        if request.code == RequestCode.HEART_BEAT:
            self._learn(connection, request)
        respond = responders[request.code]
        do = partial(self._do, respond, connection, request)
        found = self._find(connection, request, False)
        if found is None:
            return do()
        rule, place = found
        fail = partial(self._fail, rule, place, respond, do, connection, request)
        return self._later(rule.ms / 1000, fail) if rule.ms else fail()

    def _find(
        self,
        connection: IConnection,
        request: Command,
        is_answered: bool,
    ) -> tuple[FaultRule, Place] | None:
        """The rule that fits a request, which is a hit, and what the request is about.

        @param is_answered: whether the rule is to be about its answer.
        """
        if not self.rules:
            return None
        is_again = request.code in FAMILIES["pull"] and _pulled(request) in self._again
        place = self._place(connection, request)
        for rule in self.rules.values():
            if (
                not rule.is_over
                and rule.fits(place)
                and _is_of_answer(rule, request.code) is is_answered
                and not (is_again and rule.action == "duplicate")
            ):
                rule.hit(place, self._wall_ms())
                return rule, place
        return None

    def _do(
        self,
        respond: Responder,
        connection: IConnection,
        request: Command,
    ) -> Answer:
        """Do what a request asks for."""
        if self._back and request.code in FAMILIES["pull"]:
            back = self._back.pop(_pulled(request), None)
            if back is not None:
                begin, ext = back
                self._again.add(begin)
                moved = Command(ResponseCode.PULL_OFFSET_MOVED, ext)
                return self._later(AGAIN_SECONDS, lambda: moved)
        answer = respond(connection, request)
        if request.code not in _CHANGED:
            return answer
        if isinstance(answer, Deferred):
            return answer.addCallback(self._answered, connection, request)
        changed: Answer = self._answered(answer, connection, request)
        return changed

    def _answered(
        self,
        answer: Command | None,
        connection: IConnection,
        request: Command,
    ) -> Any:
        """The answer to a request, changed if a rule says so and it is a success."""
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return answer
        found = self._find(connection, request, True)
        self._again.discard(_pulled(request))
        if found is None:
            return answer
        rule, _ = found
        changed = self._changed(answer, rule, request)
        return self._later(rule.ms / 1000, lambda: changed) if rule.ms else changed

    def _later(
        self, seconds: float, work: Callable[[], Answer]
    ) -> Deferred[Command | None]:
        done: Deferred[Any] = Deferred()
        done.addCallback(lambda _: work())
        self._clock.callLater(seconds, done.callback, None)
        return done

    def _fail(
        self,
        rule: FaultRule,
        place: Place,
        respond: Responder,
        do: Callable[[], Answer],
        connection: IConnection,
        request: Command,
    ) -> Answer:
        """Do what a rule says about a request.

        @param do: does what it asks for.
        """
        action = rule.action
        if action in ("code", "busy"):
            return Command(rule.code, remark=rule.words(place))
        if action == "drop":
            return None
        if action == "cut":
            connection.close()
            return None
        if action == "delay":
            return do()
        return self._twice(respond, do, connection, request)

    def _changed(self, answer: Command, rule: FaultRule, request: Command) -> Command:
        """What a rule makes of an answer."""
        if rule.action == "corrupt":
            answer.body = corrupted(answer.body)
        elif rule.action == "duplicate":
            begin = _pulled(request)
            assert answer.ext is not None
            following = begin._replace(offset=answer.ext["nextBeginOffset"])
            ext = {**answer.ext, "nextBeginOffset": begin.offset}
            self._back[following] = begin, ext
        else:
            answer.code = STORED[rule.action]
            answer.remark = rule.remark
        return answer

    def _twice(
        self,
        respond: Responder,
        do: Callable[[], Answer],
        connection: IConnection,
        request: Command,
    ) -> Answer:
        """Let a message be stored, and once more as if nobody waited for an answer."""
        again = Command(
            request.code,
            {**(request.ext or {})},
            request.body,
            flag=request.flag | ONEWAY,
            version=request.version,
            language=request.language,
        )
        answer = do()
        second = respond(connection, again)
        if isinstance(second, Deferred):
            # The first one's sender is told.
            second.addErrback(lambda _: None)
        return answer

    def _place(self, connection: IConnection, request: Command) -> Place:
        """What a request is about."""
        ext = request.ext or {}
        if request.code in _SHORT:
            topic, group = ext.get("b"), ext.get("a")
        else:
            topic, group = _first(ext, _TOPICS), _first(ext, _GROUPS)
        client, groups = self._clients.get(connection, ("", frozenset()))
        if request.code != RequestCode.HEART_BEAT:
            groups = frozenset([group] if group else [])
        names = (client, _first(ext, _CLIENTS), connection.peer)
        clients = frozenset(name for name in names if name)
        return Place(request.code, topic, groups, clients)

    def _learn(self, connection: IConnection, request: Command) -> None:
        """Keep what a heartbeat says about the client of a connection."""
        try:
            said = cast(Any, fastjson.loads(request.body))
            groups = frozenset(
                str(each["groupName"])
                for key in ("producerDataSet", "consumerDataSet")
                for each in said.get(key) or ()
            )
            client = str(said.get("clientID", ""))
        except (RocketbrokerError, LookupError, TypeError, AttributeError):
            # The broker refuses it.
            return
        is_new = connection not in self._clients
        self._clients[connection] = client, groups
        if is_new:
            connection.watch_close(self._closed)

    def _closed(self, connection: IConnection) -> None:
        self._clients.pop(connection, None)


def _is_of_answer(rule: FaultRule, code: int) -> bool:
    """Whether a rule is about the answers to such requests."""
    action = rule.action
    is_pulled_twice = action == "duplicate" and code in FAMILIES["pull"]
    return action in STORED or action == "corrupt" or is_pulled_twice


def _first(ext: dict[str, str], names: tuple[str, ...]) -> str | None:
    return next((ext[name] for name in names if name in ext), None)


def _pulled(request: Command) -> _Pulled:
    """Where a pull begins."""
    ext = request.ext or {}
    names = ("consumerGroup", "topic", "queueId", "queueOffset")
    return _Pulled(*(ext.get(name, "") for name in names))


def corrupted(records: bytes) -> bytes:
    """Records whose bodies have another first byte; their checksums stay."""
    data = bytearray(records)
    start = 0
    while start < len(records):
        message = decode(records, start)
        hosts = len(message.born_host) + len(message.store_host)
        if message.body:
            data[start + _HEAD + hosts] ^= 0xFF
        start += message.size
    return bytes(data)
