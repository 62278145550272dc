"""What consumers ask, right and wrong: 11, 14, 15, 29 to 46, 361, 400."""

from __future__ import annotations

from typing import Any

from tests.integration.questions import (
    Ext,
    heartbeat,
    less,
    make_group,
    make_topic,
    of,
    properties,
    pull,
    send,
    settled,
    store,
)
from tests.integration.sidebyside import SECONDS, Side


def send_backs(side: Side) -> None:
    """Messages sent back, and where they stand then."""
    make_topic(side, "BackT")
    make_group(side, "BackG")
    make_group(side, "BackNone", retryQueueNums=0)
    make_group(side, "BackTwo", retryQueueNums=2)
    make_group(side, "BackOnce", retryMaxTimes=0)
    make_group(side, "BackOff", consumeEnable=False)
    make_group(side, "BackPerm")
    make_topic(side, "%RETRY%BackPerm", 1, perm=4)
    own = properties(TAGS="a", KEYS="k", UNIQ_KEY="U", WAIT="true")
    at = store(side, "BackT", i=own)

    def fields(group: str = "BackG", **more: Any) -> Ext:
        whole = "delayLevel=0 originMsgId=U originTopic=BackT unitMode=false"
        return of(
            whole, **{"offset": at, "group": group, "maxReconsumeTimes": 16, **more}
        )

    for name, ext, version in (
        ("good", fields(), 479),
        ("level 2", fields(delayLevel=2), 479),
        ("level 18", fields(delayLevel=18), 479),
        ("level 99", fields(delayLevel=99), 479),
        ("to the dead letters", fields(delayLevel=-1), 479),
        ("most 0", fields(maxReconsumeTimes=0), 479),
        ("most -1", fields(maxReconsumeTimes=-1), 479),
        ("old client, most 0", fields(maxReconsumeTimes=0), 100),
        ("without most", fields(maxReconsumeTimes=None), 479),
        ("without originals", less(fields(), "originMsgId", "originTopic"), 479),
        ("unknown group", fields("BackNew"), 479),
        ("impossible group", fields("Back.New"), 479),
        ("empty group", fields(""), 479),
        ("group wants none", fields("BackNone"), 479),
        ("two queues", fields("BackTwo"), 479),
        ("once", fields("BackOnce", maxReconsumeTimes=9), 100),
        ("once, says the client", fields("BackOnce", maxReconsumeTimes=9), 479),
        ("group is off", fields("BackOff"), 479),
        ("not writable", fields("BackPerm"), 479),
        ("offset beyond", fields(offset=1 << 40), 479),
        ("offset behind the end", fields(offset=(1 << 30) + 7), 479),
        ("offset between", fields(offset=at + 3), 479),
        ("offset negative", fields(offset=-1), 479),
        ("unit", fields("BackUnit", unitMode=True), 479),
        ("no fields", None, 479),
    ):
        side.ask(name, 36, ext, version=version)
    for group in ("BackG", "BackNew", "BackTwo", "BackUnit", "BackOnce"):
        side.ask(f"topic of {group}", 351, of(topic=f"%RETRY%{group}"))
        side.ask(f"letters of {group}", 351, of(topic=f"%DLQ%{group}"))
    settled(side)
    side.ask("dead", 11, pull("BackG", "%DLQ%BackG"))
    for level in (2, 18):
        side.ask(f"waits {level}", 11, pull("Any", "SCHEDULE_TOPIC_XXXX", level - 1))


def retries(side: Side) -> None:
    """What consumers send to retry topics themselves, in order or not."""
    make_topic(side, "RetryT")
    make_group(side, "RetryG")
    at = store(side, "RetryT")
    topic = "%RETRY%RetryG"
    own = properties(RETRY_TOPIC="RetryT", DELAY=5, UNIQ_KEY="V")
    for name, ext, version in (
        ("first", send(topic, i=own, j=1), 479),
        ("last", send(topic, i=own, j=16), 479),
        ("beyond", send(topic, i=own, j=17), 479),
        ("beyond the group's, old", send(topic, i=own, j=17, l=99), 100),
        ("beyond the group's", send(topic, i=own, j=17, l=99), 479),
        ("none", send(topic, i=own, j=1, l=0), 479),
        ("as many", send(topic, i=own, j=3, l=3), 479),
        ("one more", send(topic, i=own, j=4, l=3), 479),
        ("at once", send(topic, j=1), 479),
        ("unknown group", send("%RETRY%RetryNew", c="", i=own), 479),
        ("no group", send("%RETRY%", i=own), 479),
    ):
        side.ask(name, 310, ext, b"y", version=version)
    settled(side)
    side.ask("dead", 11, pull("RetryG", "%DLQ%RetryG"))
    side.ask("waits", 11, pull("Any", "SCHEDULE_TOPIC_XXXX", 4))
    locked = locking("c", 0, consumerGroup="RetryG")
    side.ask("lock", 41, {}, locked)
    side.ask("in order", 310, send(topic, j=1), b"z")
    back = of("group=RetryG delayLevel=7 maxReconsumeTimes=16", offset=at)
    side.ask("given back in order", 36, back)
    side.ask("unlock", 42, {}, locked)
    side.ask("not in order", 310, send(topic, j=1), b"z")
    settled(side)
    side.ask("waits, given back", 11, pull("Any", "SCHEDULE_TOPIC_XXXX", 6))


def locking(client: str, *queues: int, **more: Any) -> Ext:
    """The body of 41 and 42."""
    wanted = [
        {"brokerName": "broker-a", "queueId": n, "topic": "LockT"} for n in queues
    ]
    return {
        "clientId": client,
        "consumerGroup": "LockG",
        "mqSet": wanted,
        "onlyThisBroker": False,
        **more,
    }


def locks(side: Side) -> None:
    """Queues that are locked, and let go."""
    make_topic(side, "LockT", 3)
    other = {"brokerName": "x", "queueId": 0, "topic": "NoSuch"}
    for name, code, body in (
        ("lock", 41, locking("one", 0, 1)),
        ("again", 41, locking("one", 0)),
        ("by another", 41, locking("two", 0, 2)),
        ("another's unlock", 42, locking("two", 0, 1)),
        ("still locked", 41, locking("two", 0, 1)),
        ("other group", 41, locking("two", 0, 1, consumerGroup="LockG2")),
        ("unlock", 42, locking("one", 0)),
        ("free", 41, locking("two", 0)),
        ("unknown queue", 41, locking("one", 99, -1)),
        ("unknown topic", 41, locking("one", mqSet=[other])),
        ("nothing", 41, locking("one")),
        ("this broker", 41, locking("one", 2, onlyThisBroker=True)),
        ("no set", 41, less(locking("one"), "mqSet")),
        ("no client", 41, locking("one", 1, clientId=None)),
        ("no body", 41, b""),
        ("garbage", 41, b"garbage"),
        ("a list", 41, []),
        ("unlock: no body", 42, b""),
        ("unlock: unknown group", 42, locking("one", 0, consumerGroup="NoSuch")),
        ("unlock: no set", 42, less(locking("one"), "mqSet")),
    ):
        side.ask(name, code, {}, body)


def offsets(side: Side) -> None:
    """Offsets of groups and of queues."""
    make_topic(side, "OffsetT")
    make_group(side, "OffsetG")
    at = store(side, "OffsetT", 3)
    for name, code, more in (
        ("nothing", 14, ""),
        ("not zero", 14, "setZeroIfNotFound=false"),
        ("zero", 14, "setZeroIfNotFound=true"),
        ("unknown topic", 14, "topic=NoSuch"),
        ("unknown topic, not zero", 14, "topic=NoSuch setZeroIfNotFound=false"),
        ("unknown queue", 14, "queueId=77 setZeroIfNotFound=false"),
        ("unknown group", 14, "consumerGroup=NoSuch"),
        ("good", 15, "commitOffset=2"),
        ("then", 14, ""),
        ("lower", 15, "commitOffset=1"),
        ("beyond", 15, "commitOffset=100"),
        ("beyond, then", 14, ""),
        ("negative", 15, "commitOffset=-1"),
        ("negative, then", 14, ""),
        ("commit, unknown topic", 15, "topic=NoSuch commitOffset=1"),
        ("commit, unknown group", 15, "consumerGroup=NoSuch commitOffset=1"),
        ("queue beyond", 15, "queueId=77 commitOffset=1"),
        ("queue negative", 15, "queueId=-1 commitOffset=1"),
        ("no offset", 15, ""),
        ("no number", 15, "commitOffset=x"),
        ("no queue", 15, "queueId= commitOffset=1"),
    ):
        whole = of("consumerGroup=OffsetG topic=OffsetT queueId=0")
        side.ask(f"{code}: {name}", code, {**whole, **of(more)})
    for code in (30, 31, 32):
        for topic, queue in (
            ("OffsetT", 0), ("OffsetT", 1), ("OffsetT", 9), ("OffsetT", -1),
            ("NoSuch", 0), ("", 0),
        ):  # fmt: skip
            side.ask(f"{code}: {topic} {queue}", code, of(topic=topic, queueId=queue))
    for ms in (0, -1, 4102444800000, -(1 << 63), (1 << 63) - 1):
        for boundary in ("LOWER", "UPPER", None):
            ext = of("topic=OffsetT queueId=0", timestamp=ms, boundaryType=boundary)
            side.ask(f"29: {ms} {boundary}", 29, ext)
    for place in ("topic=OffsetT queueId=1", "topic=NoSuch queueId=0"):
        side.ask(f"29: {place}", 29, of(place, timestamp=0))
    for name, offset in (("good", at), ("in it", at + 1), ("far", 1 << 40), ("-5", -5)):
        side.ask(f"33: {name}", 33, of(offset=offset))


def pulls(side: Side) -> None:
    """Pulls."""
    make_topic(side, "PullT")
    make_topic(side, "PullUnreadable", perm=2)
    make_topic(side, "PullUnwritable", perm=4)
    make_group(side, "PullG")
    make_group(side, "PullOff", consumeEnable=False)
    store(side, "PullT", 5)
    store(side, "PullT", 2, i=properties(TAGS="a", N="7", UNIQ_KEY="U"))

    def at(**more: Any) -> Ext:
        return pull("PullG", "PullT", **more)

    wait: Ext = {"sysFlag": 6, "suspendTimeoutMillis": 50}
    # Java looks after those that wait each five seconds, so they do it together.
    waiting = [
        (f"{code}: {name}", side.begin(code, ext))
        for name, ext in (
            ("waits", at(offset=7, **wait)),
            ("waits for no time", at(offset=7, sysFlag=6)),
            ("commits, waits", at(offset=7, commitOffset=3) | {"sysFlag": 7}),
        )
        for code in (11, 361)
    ]
    for name, ext in (
        ("all", at()),
        ("one", at(maxMsgNums=1)),
        ("none", at(maxMsgNums=0)),
        ("less than none", at(maxMsgNums=-1)),
        ("last", at(offset=6)),
        ("queue beyond", at(queue=2)),
        ("queue negative", at(queue=-1)),
        ("unknown topic", pull("PullG", "NoSuch")),
        ("illegal topic", pull("PullG", "a.b")),
        ("unknown group", pull("PullNew", "PullT")),
        ("impossible group", pull("Pull.New", "PullT")),
        ("empty group", pull("", "PullT")),
        ("unreadable", pull("PullG", "PullUnreadable")),
        ("unwritable", pull("PullG", "PullUnwritable")),
        ("group is off", pull("PullOff", "PullT")),
        ("no fields", None),
        ("no number", at(queueOffset="x")),
        ("waits for the impossible", at(offset=8, **wait)),
        ("waits before the beginning", at(offset=-1, **wait)),
        ("class filter", at(sysFlag=12)),
        ("lite bit", at(sysFlag=20)),
    ):
        side.ask(name, 11, ext)
        if name != "no fields":
            side.ask(f"361: {name}", 361, ext)
    for offset in (7, 8, 1000, -1, -(1 << 63), (1 << 63) - 1):
        side.ask(f"offset {offset}", 11, at(offset=offset))
        side.ask(f"offset {offset}, no message", 11, at(queue=1, offset=offset))
    for name, line in waiting:
        side.note(name, line.receive(SECONDS))
    side.ask("committed", 14, of("consumerGroup=PullG topic=PullT queueId=0"))


def subscriptions(side: Side) -> None:
    """Pulls by what they bring, and by what heartbeats have said."""
    make_topic(side, "WantT")
    for group in ("WantG", "WantBroadcast", "WantSql", "WantBad"):
        make_group(side, group, consumeBroadcastEnable=group != "WantBroadcast")
    store(side, "WantT", 3)
    store(side, "WantT", 2, i=properties(TAGS="a", N="7", UNIQ_KEY="U"))
    for kind, texts in {
        "TAG": ("a", "b || a", "c", "||", " ", "", "a||", "*"),
        "": ("a", "*"),
        "SQL92": ("N > 5", "N > 9", "", "N IS NULL"),
        "Other": ("", "a"),
    }.items():
        for text in texts:
            ext = pull("WantG", "WantT", subscription=text, expressionType=kind)
            side.ask(f"brings {text} {kind}", 11, ext)
    silent: Ext = {"sysFlag": 0, "subscription": None}
    side.ask("nobody there", 11, pull("WantG", "WantT", **silent))
    for client, group, text, kind in (
        ("c1", "WantG", "a || b", "TAG"),
        ("c2", "WantBroadcast", "*", "TAG"),
        ("c3", "WantSql", "N = 7", "SQL92"),
        ("c4", "WantBad", "N =", "SQL92"),
    ):
        model = "BROADCASTING" if client == "c2" else "CLUSTERING"
        body = heartbeat(client, group, "WantT", text, kind, messageModel=model)
        side.quietly(34, {}, body)
        side.ask(f"{group} pulls", 11, pull(group, "WantT", **silent))
        newer = pull(group, "WantT", **silent, subVersion=1 << 42)
        side.ask(f"{group} pulls, newer", 11, newer)
        named = pull(group, "WantT", **silent, expressionType=kind)
        side.ask(f"{group} pulls, with type", 11, named)
    other = pull("WantG", "WantNothing", **silent)
    make_topic(side, "WantNothing")
    side.ask("of another topic", 11, other)
    committed = of("consumerGroup=WantG topic=WantT queueId=0")
    for name, ext in (
        ("commits", pull("WantG", "WantT", sysFlag=5, commitOffset=4)),
        ("commits 0", pull("WantG", "WantT", sysFlag=5, commitOffset=0)),
    ):
        side.ask(name, 11, ext)
        side.ask(f"{name}, then", 14, committed)


def checks(side: Side) -> None:
    """Heartbeats, and what is told of those who send them."""
    make_topic(side, "ClientT")

    def wanted(text: object, kind: object = "SQL92") -> dict[str, object]:
        data = {"topic": "ClientT", "subString": text, "expressionType": kind}
        return {"clientId": "c", "group": "g", "subscriptionData": data}

    version2 = heartbeat("c1", "ClientV2", "ClientT") | {"heartbeatFingerprint": 77}
    for name, code, ext, body in (
        ("sql", 46, {}, wanted("a > 5")),
        ("bad sql", 46, {}, wanted("a >")),
        ("empty sql", 46, {}, wanted("")),
        ("null sql", 46, {}, wanted(None)),
        ("tags", 46, {}, wanted("a || b", "TAG")),
        ("separators", 46, {}, wanted("||", "TAG")),
        ("null type", 46, {}, wanted("a", None)),
        ("empty type", 46, {}, wanted("a", "")),
        ("other type", 46, {}, wanted("a", "Other")),
        ("garbage", 46, {}, b"x"),
        ("nobody", 38, of("consumerGroup=ClientG"), b""),
        ("no connections", 203, of("consumerGroup=ClientG"), b""),
        ("heartbeat", 34, {}, heartbeat("c1", "ClientG", "ClientT", "a || b")),
        ("one", 38, of("consumerGroup=ClientG"), b""),
        ("connections", 203, of("consumerGroup=ClientG"), b""),
        ("who", 300, of("topic=ClientT"), b""),
        ("who, unknown", 300, of("topic=NoSuch"), b""),
        ("retry topic", 351, of("topic=%RETRY%ClientG"), b""),
        ("impossible group", 34, {}, heartbeat("c1", "Client.G", "ClientT")),
        ("impossible, then", 38, of("consumerGroup=Client.G"), b""),
        (
            "sql that is none",
            34,
            {},
            heartbeat("c1", "ClientS", "ClientT", "a >", "SQL92"),
        ),
        ("no body", 34, {}, b""),
        ("garbage in heartbeat", 34, {}, b"x"),
        ("empty", 34, {}, {}),
        ("version 2", 34, {}, version2),
        ("version 2 again", 34, {}, version2),
        ("version 2 changed", 34, {}, version2 | {"heartbeatFingerprint": 78}),
        ("unregister", 35, of("clientID=c1 consumerGroup=ClientG"), b""),
        ("gone", 38, of("consumerGroup=ClientG"), b""),
        ("again", 35, of("clientID=c1 consumerGroup=ClientG producerGroup=x"), b""),
        ("unregister nothing", 35, {}, b""),
    ):
        side.ask(name, code, ext, body)


def assignments(side: Side) -> None:
    """Queues that the broker gives to members."""
    make_topic(side, "AssignT", 3)
    side.routed("AssignT")
    make_group(side, "AssignG")
    question = {
        "clientId": "c1",
        "consumerGroup": "AssignG",
        "messageModel": "CLUSTERING",
        "strategyName": "AVG",
        "topic": "AssignT",
    }
    side.ask("nobody", 400, {}, question)
    line = side.connect()
    side.quietly(34, {}, heartbeat("c1", "AssignG", "AssignT"), on=line)
    for key, values in {
        "clientId": ("c1", "c9", None),
        "strategyName": ("AVG_BY_CIRCLE", "X", None),
        "messageModel": ("BROADCASTING",),
        "topic": ("NoSuch", "%RETRY%AssignG"),
        "consumerGroup": ("NoSuch", None),
    }.items():
        for value in values:
            side.ask(f"{key} {value}", 400, {}, {**question, key: value})
    side.ask("no body", 400, {})
    side.ask("garbage", 400, {}, b"x")
    mode = {"consumerGroup": "AssignG", "mode": "PULL", "topic": "AssignT"}
    for key, value in (
        ("mode", "PULL"),
        ("topic", "NoSuch"),
        ("topic", "%RETRY%AssignG"),
        ("consumerGroup", "AssignNew"),
        ("consumerGroup", "Assign.New"),
    ):
        side.ask(f"mode: {key} {value}", 401, {}, {**mode, key: value})
    side.ask("mode: no body", 401, {})
    side.ask("then", 400, {}, question)
