"""What an official Java client asks of brokers that control access, row by row.

Each row is asked at the Java broker and at ours by one client with RocketMQ's own hook
(C{AclClientRPCHook}). An outcome is what came of it, and each refusal that the client
was answered: request code, response code, words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from scripts.lab.javaclient import PATIENCE, JavaClient, JavaError, encoded
from tests.integration.javacase import fresh, until
from tests.integration.sidebyside import Pair

#: The rows with their outcomes, for C{docs/compatibility.rst}.
ROWS: Final = Path(__file__).with_name("access_rows.json")

#: What each client signs with, by the name of the account; none has signed nothing.
SECRETS: Final[Mapping[str, tuple[str, str] | None]] = {
    "application": ("application", "app-secret"),
    "trader": ("trader", "trade-secret"),
    "wrong secret": ("application", "a-wrong-one"),
    "unknown": ("somebody", "some-secret"),
    "disabled": ("retired", "old-secret"),
    "white address": ("neighbour", "a-wrong-one"),
    "nobody": None,
    "administrator": ("administrator", "admin-secret"),
}

#: The accounts of ACL 1.0.
ACCOUNTS: Final = """
accounts:
- accessKey: administrator
  secretKey: admin-secret
  admin: true
- accessKey: application
  secretKey: app-secret
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms: [Orders=PUB|SUB, Reports=SUB, Outbox=PUB, Secrets=DENY]
  groupPerms: [billing=SUB, retrying=SUB, pulling=SUB, CLIENT_INNER_PRODUCER=SUB]
- accessKey: neighbour
  secretKey: its-secret
  whiteRemoteAddress: 127.0.0.1
  defaultTopicPerm: PUB
"""

#: The policies of ACL 2.0: user, resource, actions, decision, address.
POLICIES: Final = (
    ("application", "Topic:Orders", "Pub,Sub", "Allow", None),
    ("application", "Topic:Reports", "Sub", "Allow", None),
    ("application", "Topic:Outbox", "Pub", "Allow", None),
    ("application", "Topic:Secrets", "Pub", "Deny", None),
    ("application", "Topic:Elsewhere", "Pub", "Allow", "10.0.0.0/8"),
    ("application", "Group:billing", "Sub", "Allow", None),
    ("application", "Group:retrying", "Sub", "Allow", None),
    ("application", "Group:pulling", "Sub", "Allow", None),
    ("application", "Group:CLIENT_INNER_PRODUCER", "Sub", "Allow", None),
    ("trader", "Topic:Outbox", "Pub", "Allow", None),
    ("trader", "Topic:RMQ_SYS_TRANS_HALF_TOPIC", "Pub", "Allow", None),
)

#: The topics, each with a queue.
TOPICS: Final = ("Orders", "Reports", "Outbox", "Secrets", "Elsewhere")

#: Requests that clients send by themselves again and again, or when they end.
OF_ALL_CLIENTS: Final = (34, 35, 38)

#: The codes of refusals; others say that there is nothing, not yet or no more.
REFUSED: Final = (1, 16)

#: How long a message is waited for that must not come, in seconds.
SILENCE: Final = 12.0

#: What of words is of one broker, or of one moment: Java's frame, and its classes.
ANY: Final = [
    (re.compile(pattern, re.DOTALL), instead)
    for pattern, instead in (
        (r"org\.apache\.rocketmq\.acl\.common\.AclException: ", ""),
        (r", org\.apache\.rocketmq\..*", ""),
        (r"For more information.*", ""),
        (r"127\.0\.0\.1:\d+", "{address}"),
        (r"[CPG]_[0-9a-f]{10}", "{name}"),
    )
]


#: Asks a broker something, with what commands need for an account.
Ask = Callable[["Asker", dict[str, Any]], object]


class Row(NamedTuple):
    """One thing that a client asks.

    @ivar what: in words.
    @ivar account: a key of L{SECRETS}.
    @ivar ask: does it; what comes of it.
    @ivar only: the generation that has it, empty: both.
    """

    what: str
    account: str
    ask: Ask
    only: str = ""


class Asker:
    """The client at one broker.

    @ivar address: of the broker.
    """

    def __init__(self, java: JavaClient, address: str, names: str) -> None:
        self.java = java
        self.address = address
        self._names = names

    def words(self, account: str) -> dict[str, Any]:
        """What commands need for an account."""
        login = SECRETS[account]
        if login is None:
            return {"names": self._names, "watched": True}
        return {"names": self._names, "key": login[0], "secret": login[1]}

    def refusals(self) -> list[str]:
        """What was refused since this was asked last, without what is of the moment."""
        return sorted(
            {
                f"{each['request']}: {each['code']} {plain(each['remark'])}"
                for each in self.java("refusals")
                if each["request"] not in OF_ALL_CLIENTS and each["code"] in REFUSED
            }
        )

    def seed(self) -> None:
        """Have a message in each topic."""
        words = self.words("administrator")
        for topic in TOPICS:
            send(topic)(self, words)

    def outcome(self, row: Row) -> str:
        """What comes of a row."""
        self.refusals()
        try:
            done = str(row.ask(self, self.words(row.account)))
        except JavaError as error:
            done = f"{error.kind} {error.code}"
        return "; ".join([done, *self.refusals()])


def plain(remark: str | None) -> str:
    """The words of a refusal, without what is of one broker."""
    text = remark or ""
    for pattern, instead in ANY:
        text = pattern.sub(instead, text)
    return text.strip()


# What is asked.

PLACE: Final = {"broker": "broker-a", "queue": 0}


def producer(asker: Asker, words: dict[str, Any], kind: str = "producer") -> str:
    """The name of a started producer."""
    name = fresh("P")
    asker.java(kind, name=name, group=name, **words)
    return name


def send(topic: str, **more: Any) -> Ask:
    """Send a message."""

    def ask(asker: Asker, words: dict[str, Any]) -> object:
        name = producer(asker, words)
        try:
            answer = asker.java.send(name, topic, b"x", **more)
            return answer if isinstance(answer, str) else answer["status"]
        finally:
            asker.java("stop", name=name)

    return ask


def send_batch(topic: str) -> Ask:
    """Send two messages as one."""

    def ask(asker: Asker, words: dict[str, Any]) -> object:
        name = producer(asker, words)
        messages = [{"body": encoded(b"%d" % n)} for n in range(2)]
        try:
            answer = asker.java("sendBatch", name=name, topic=topic, messages=messages)
            return answer["status"]
        finally:
            asker.java("stop", name=name)

    return ask


def transaction(topic: str, local: str, seconds: float = PATIENCE) -> Ask:
    """Send a message in a transaction, and see it come.

    @param local: what becomes of it at once.
    @param seconds: how long it may take to come.
    """

    def ask(asker: Asker, words: dict[str, Any]) -> object:
        root = asker.words("administrator")
        before = end_of(asker, root, topic)
        name = producer(asker, words, "transactionalProducer")
        own = {"local": local, "checked": "COMMIT_MESSAGE"}
        try:
            answer = asker.java(
                "sendInTransaction",
                name=name,
                topic=topic,
                body=encoded(b"t"),
                properties=own,
            )
            came = until(lambda: end_of(asker, root, topic) > before, seconds)
            return f"{answer['status']}, {'committed' if came else 'not there'}"
        finally:
            asker.java("stop", name=name)

    return ask


def end_of(asker: Asker, words: dict[str, Any], topic: str) -> int:
    """The end of the topic's queue."""
    where = {"question": "maxOffset", "topic": topic}
    return int(asker.java("operator", **where, **PLACE, **words))


def pull(topic: str, group: str) -> Ask:
    """Pull the first message."""

    def ask(asker: Asker, words: dict[str, Any]) -> object:
        where = {"topic": topic, "group": group, "tags": "*", "offset": 0, "most": 1}
        return asker.java("pull", **where, **PLACE, **words)["status"]

    return ask


def push(topic: str, group: str, **more: Any) -> Ask:
    """Consume until a message is there, the last of them again if it fails once."""

    def ask(asker: Asker, words: dict[str, Any]) -> object:
        name = fresh("C")
        asker.java("consumer", name=name, group=group, topic=topic, **more, **words)
        try:
            found = asker.java.received(name, 1)
            if "failUntil" in more:
                assert until(lambda: again(asker, name)), found
                return "received again"
            return "received" if found else "nothing"
        finally:
            asker.java("stop", name=name)

    return ask


def again(asker: Asker, name: str) -> bool:
    """Whether a consumer has got a message a second time."""
    return any(each["times"] for each in asker.java.received(name, 1))


def heartbeat(topic: str, group: str) -> Ask:
    """Begin to consume, which is refused; the refusals of the heartbeat alone."""

    def ask(asker: Asker, words: dict[str, Any]) -> object:
        name = fresh("C")
        found: dict[int, str] = {}

        def refused() -> bool:
            for each in asker.java("refusals"):
                said = f"{each['code']} {plain(each['remark'])}"
                found[each["request"]] = f"{each['request']}: {said}"
            return 34 in found

        asker.java("consumer", name=name, group=group, topic=topic, **words)
        try:
            assert until(refused)
            assert not asker.java.received(name, 1, 0)
        finally:
            asker.java("stop", name=name)
        refused()
        return "; ".join(found[code] for code in (34, 35) if code in found)

    return ask


def send_back(group: str) -> Ask:
    """Let the first message come to a group again."""

    def ask(asker: Asker, words: dict[str, Any]) -> object:
        reader = {**asker.words("administrator"), "group": "reading"}
        where = {"topic": "Orders", "group": group, "reader": reader}
        return asker.java("sendBack", **where, **PLACE, **words)

    return ask


def offset(topic: str, group: str) -> Ask:
    """Ask how far a group is."""

    def ask(asker: Asker, words: dict[str, Any]) -> object:
        return asker.java("offset", topic=topic, group=group, **PLACE, **words)

    return ask


def end(topic: str) -> Ask:
    """Ask for the end of a queue."""

    def ask(asker: Asker, words: dict[str, Any]) -> object:
        return f"is {'known' if end_of(asker, words, topic) else 0}"

    return ask


def call(method: str, *values: object) -> Ask:
    """Call a method of the operator's library; what stands for the broker is None."""

    def ask(asker: Asker, words: dict[str, Any]) -> object:
        given = [asker.address if each is None else each for each in values]
        given = [[asker.address] if each == "brokers" else each for each in given]
        asker.java("call", method=method, words=given, **words)
        return "done"

    return ask


def eventually(ask: Ask) -> Ask:
    """Ask until it is not refused: files are looked at every five seconds."""

    def repeated(asker: Asker, words: dict[str, Any]) -> object:
        found: list[object] = []

        def done() -> bool:
            try:
                found.append(ask(asker, words))
            except JavaError:
                return False
            return True

        assert until(done)
        asker.refusals()
        return found[0]

    return repeated


def commit(topic: str, group: str) -> Ask:
    """Set how far a group is."""
    queue = {"topic": topic, "brokerName": "broker-a", "queueId": 0}
    return call("updateConsumeOffset", None, group, queue, 1)


def operator_rows(account: str) -> Iterator[Row]:
    """What operators do, by an account."""
    topic, group = f"New{account[:3]}", f"new-{account[:3]}"
    topic_settings = {"topicName": topic, "readQueueNums": 1, "writeQueueNums": 1}
    for what, ask in (
        (
            "create a topic",
            call("createAndUpdateTopicConfig", None, {**topic_settings, "perm": 6}),
        ),
        ("delete a topic", call("deleteTopicInBroker", "brokers", topic)),
        (
            "create a group",
            call("createAndUpdateSubscriptionGroupConfig", None, {"groupName": group}),
        ),
        ("delete a group", call("deleteSubscriptionGroup", None, group, True)),
        (
            "change a setting",
            call("updateBrokerConfig", None, {"fileReservedTime": "71"}),
        ),
        ("read the settings", call("getBrokerConfig", None)),
        ("read the figures", call("fetchBrokerRuntimeStats", None)),
    ):
        yield Row(what, account, ask)


def strangers_rows(account: str, only: str = "") -> Iterator[Row]:
    """What somebody asks whom the broker does not know."""
    for what, ask in (
        ("send", send("Orders")),
        ("send a batch", send_batch("Orders")),
        ("pull", pull("Orders", "billing")),
        ("heartbeat of a consumer", heartbeat("Orders", "billing")),
        ("send back", send_back("billing")),
        ("commit an offset", commit("Orders", "billing")),
        ("read the figures", call("fetchBrokerRuntimeStats", None)),
    ):
        yield Row(what, account, ask, only)


def rows() -> Iterator[Row]:
    """All of them, in the order in which they are asked."""
    one = "application"
    yield Row("send", one, send("Orders"))
    yield Row("send, Pub alone", one, send("Outbox"))
    yield Row("send, Sub alone", one, send("Reports"))
    yield Row("send, denied", one, send("Secrets"))
    yield Row("send, from another address", one, send("Elsewhere"))
    yield Row("send one-way", one, send("Orders", mode="oneway"))
    yield Row("send with a callback", one, send("Orders", mode="async"))
    yield Row("send with a callback, denied", one, send("Secrets", mode="async"))
    yield Row("send a batch", one, send_batch("Orders"))
    yield Row("send a batch, denied", one, send_batch("Secrets"))
    yield Row("send with a delay", one, send("Orders", delayLevel=1))
    yield Row("send with a delay, denied", one, send("Secrets", delayLevel=1))
    yield Row("transaction", one, transaction("Outbox", "COMMIT_MESSAGE"))
    checked = transaction("Outbox", "UNKNOW")
    yield Row("transaction, checked back", one, checked, "1.0")
    silent = transaction("Outbox", "UNKNOW", SILENCE)
    yield Row("transaction, checked back", one, silent, "2.0")
    yield Row("transaction, checked back", "trader", checked, "2.0")
    yield Row("transaction, checked back", "administrator", checked)
    yield Row("transaction, denied", one, transaction("Secrets", "COMMIT_MESSAGE"))
    yield Row("send to a retry topic", one, send("%RETRY%billing"))
    yield Row("send to a retry topic, denied", one, send("%RETRY%others"))
    yield Row("pull", one, pull("Orders", "pulling"))
    yield Row("pull, Pub alone", one, pull("Outbox", "pulling"))
    yield Row("pull, group denied", one, pull("Orders", "others"))
    yield Row("consume", one, push("Orders", "billing"))
    yield Row("consume, again after a failure", one, RETRY)
    yield Row("consume, topic denied", one, heartbeat("Outbox", "billing"))
    yield Row("consume, group denied", one, heartbeat("Orders", "others"))
    yield Row("send back", one, send_back("billing"))
    yield Row("send back, denied", one, send_back("others"))
    yield Row("commit an offset", one, commit("Orders", "billing"))
    yield Row("commit an offset, topic denied", one, commit("Outbox", "billing"))
    yield Row("commit an offset, group denied", one, commit("Orders", "others"))
    yield Row("read an offset", one, offset("Orders", "billing"))
    yield Row("read an offset, denied", one, offset("Outbox", "billing"))
    yield Row("read the end of a queue", one, end("Orders"))
    yield Row("read the end of a queue, denied", one, end("Secrets"))
    yield from operator_rows(one)
    yield from strangers_rows("nobody")
    yield from strangers_rows("wrong secret")
    yield from strangers_rows("unknown")
    yield from strangers_rows("disabled", "2.0")
    yield Row("send", "white address", send("Orders"), "1.0")
    yield Row("send, Sub alone", "white address", send("Reports"), "1.0")
    yield from operator_rows("administrator")
    yield Row("send", "administrator", send("Secrets"))
    yield Row("pull", "administrator", pull("Secrets", "others"))
    yield Row("consume", "administrator", push("Orders", "others"))
    opened = call("updateGlobalWhiteAddrConfig", None, "127.0.0.1")
    yield Row("let an address in", "administrator", opened, "1.0")
    yield Row("send, from that address", "nobody", eventually(send("Secrets")), "1.0")


#: The message that fails is the first; it comes again after a second.
RETRY: Final = push("Orders", "retrying", failUntil=1, level=1)

#: Rows that are not as at the Java broker, and why, by generation.
DIFFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "1.0": {"send a batch, denied / application": "4.9 does not look at batches"},
    "2.0": {},
}


# The brokers.

#: Settings of both: nothing is refused because the machine has no time, and
#: transactions are looked at soon.
PATIENT: Final[dict[str, Any]] = {
    "brokerFastFailureEnable": "false",
    "osPageCacheBusyTimeOutMills": 60_000,
    "waitTimeMillsInSendQueue": 20_000,
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1500,
}

#: Where RocketMQ keeps users and policies.
PROVIDERS: Final[dict[str, Any]] = {
    f"{kind}MetadataProvider": f"org.apache.rocketmq.auth.{kind}.provider."
    f"Local{kind.capitalize()}MetadataProvider"
    for kind in ("authentication", "authorization")
}

#: Settings of a broker with ACL 2.0.
POLICY_SETTINGS: Final[dict[str, Any]] = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": json.dumps(
        {"username": "administrator", "password": "admin-secret"}
    ),
    "innerClientAuthenticationCredentials": json.dumps(
        {"accessKey": "inner", "secretKey": "inner-secret"}
    ),
    **PROVIDERS,
}


def with_plain_access() -> Pair:
    """Two brokers with the accounts of ACL 1.0."""
    pair = Pair("4.9.7", aclEnable="true", **PATIENT)
    for home in pair.homes:
        (home / "conf").mkdir(exist_ok=True)
        (home / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    return pair


def with_policies() -> Pair:
    """Two brokers with ACL 2.0, and an administrator."""
    return Pair("5.3.3", **POLICY_SETTINGS, **PATIENT)


#: In each commit these are asked; the others only in the heavy set.
SHORT: Final = frozenset(
    (
        *("send", "send, denied", "pull", "pull, group denied", "consume"),
        *("consume, topic denied", "create a topic", "change a setting"),
    )
)


def told(found: Mapping[str, list[dict[str, str]]]) -> str:
    """The content of L{ROWS}."""
    return json.dumps(found, indent=1) + "\n"
