"""What producers ask, right and wrong: 10, 310, 320, 324, 325."""

from __future__ import annotations

from typing import Any

from tests.integration.questions import (
    Ext,
    make_topic,
    of,
    part,
    properties,
    pull,
    send,
    send_long,
    settled,
)
from tests.integration.sidebyside import SECONDS, Side, answer_to, command_of

NAMES = {
    "unknown": "SendNew",
    "blank": " ",
    "empty": "",
    "dot": "a.b",
    "slash": "a/b",
    "plus": "a+b",
    "127": "t" * 127,
    "128": "t" * 128,
    "retry 128": "%RETRY%" + "t" * 121,
    "dead letters": "%DLQ%SendG",
    "percent": "%a|b-c_D",
    "umlaut": "\u00e4",
}

SYSTEM_NAMES = """
    SCHEDULE_TOPIC_XXXX RMQ_SYS_TRANS_HALF_TOPIC RMQ_SYS_TRANS_OP_HALF_TOPIC
    TRANS_CHECK_MAX_TIME_TOPIC SELF_TEST_TOPIC OFFSET_MOVED_EVENT TBW102
    RMQ_SYS_TRACE_TOPIC BenchmarkTest DefaultCluster broker-a
    DefaultCluster_REPLY_TOPIC rmq_sys_REVIVE_LOG_DefaultCluster rmq_sys_wheel_timer
    rmq_sys_whatever rmq_sys_SYNC_BROKER_MEMBER_broker-a
""".split()

#: Properties that mean something somewhere.
PROPERTIES = """
    WAIT=false WAIT=x POP_CK=x INNER_BASE=0 TRAN_MSG=false REAL_TOPIC=a MSG_REGION=a
    TRACE_ON=false CLUSTER=x __SHARDINGKEY=s KEYS=k TAGS= RETRY_TOPIC=x
    ORIGIN_MESSAGE_ID=x INSTANCE_ID=x BORN_TIMESTAMP=x TIMER_OUT_MS=1
    __STARTDELIVERTIME=1 UNIQ_KEY= DELAY=0 DELAY=-1 DELAY= DELAY=x DELAY=99999999999
    DELAY=17 DELAY=18 DELAY=19 DELAY=100 TRAN_MSG=true INNER_NUM=2
""".split()


def sends(side: Side) -> None:
    """Messages and queues."""
    make_topic(side, "SendT")
    for name, code, ext, body in (
        ("10", 10, send_long("SendT", 1), b"x"),
        ("310", 310, send("SendT"), b"x"),
        ("without unique key", 310, send("SendT", i=properties(A="b")), b"x"),
        ("without properties", 310, send("SendT", i=None), b"x"),
        ("no body", 310, send("SendT"), b""),
        ("no fields", 310, None, b"x"),
        ("nothing in the fields", 310, {}, b"x"),
        ("no number", 310, send("SendT", e="many"), b"x"),
        ("empty number", 310, send("SendT", e=""), b"x"),
        ("number too large", 310, send("SendT", e=1 << 40), b"x"),
        ("queue beyond", 310, send("SendT", 2), b"x"),
        ("queue far beyond", 310, send("SendT", 1 << 30), b"x"),
        ("any queue", 310, send("SendOne", -1, d=1), b"x"),
        ("properties like none", 310, send("SendT", i="abc"), b"x"),
        ("separators", 310, send("SendT", i="\x02\x01\x02\x01\x01a\x02"), b"x"),
        ("no value", 310, send("SendT", i=properties(UNIQ_KEY="U", A="")), b"x"),
        ("body of 4 MiB", 310, send("SendT"), b"x" * (4 << 20)),
        ("body beyond", 310, send("SendT"), b"x" * ((4 << 20) + 1)),
        ("reconsumed", 310, send("SendT", j=7), b"x"),
        ("reconsumed less", 310, send("SendT", j=-7), b"x"),
        ("flag", 310, send("SendT", h=-5), b"x"),
        ("unit", 310, send("SendUnit", k=True), b"x"),
        ("unit's topic", 351, of("topic=SendUnit"), b""),
    ):
        side.ask(name, code, ext, body)
    for size in (32600, 32767, 32768, 40000):
        text = properties(UNIQ_KEY="U", A="a" * (size - 13))
        side.ask(f"properties of {size}", 310, send("SendT", i=text), b"x")
    # Not 16 and 32, for long addresses: Java stores what it cannot read then.
    for flag in (1, 2, 256, 0x700):
        side.ask(f"flag {flag}", 310, send("SendT", f=flag), b"x")
    for flag in (4, 8, 12, 64, 128):
        side.ask(f"flag {flag}", 310, send("SendOdd", f=flag), b"x")
    for entry in PROPERTIES:
        key, _, value = entry.partition("=")
        text = properties(**{"UNIQ_KEY": "U", key: value})
        side.ask(f"property {entry}", 310, send("SendT", i=text), b"x")
    settled(side)
    side.ask("stored", 11, pull("SendG", "SendT", offset=7))
    side.ask("stored 1", 11, pull("SendG", "SendT", 1))


def topics_of_sends(side: Side) -> None:
    """Topics, those that are made by a send too."""
    make_topic(side, "NameT")
    for name, topic in NAMES.items():
        side.ask(f"topic {name}", 310, send(topic), b"x")
    for topic in SYSTEM_NAMES:
        side.ask(f"topic {topic}", 310, send(topic), b"x")
    for default, more in (
        ("NoSuch", {}),
        ("", {}),
        ("NameT", {}),
        ("DefaultCluster", {"d": 20}),
        ("broker-a", {"d": 20}),
        ("TBW102", {"d": 0}),
        ("TBW102", {"d": -3}),
        ("TBW102", {"d": 0, "e": -1}),
        ("TBW102", {"d": 3}),
        ("TBW102", {"d": 99}),
    ):
        topic = "Name_" + "".join(f"{key}{value}_" for key, value in more.items())
        topic += default
        side.ask(f"send to {topic}", 310, send(topic, c=default, **more), b"x")
        side.ask(f"then {topic}", 351, of(topic=topic))
    for perm in (2, 4, 0, 1):
        make_topic(side, f"NamePerm{perm}", perm=perm)
        side.ask(f"perm {perm}", 310, send(f"NamePerm{perm}"), b"x")


def batches(side: Side) -> None:
    """Batches."""
    make_topic(side, "BatchT")
    make_topic(side, "BatchOdd")
    two = part(b"one", properties(TAGS="a")) + part(b"two")

    def fields(topic: str = "BatchT", **more: Any) -> Ext:
        return send(topic, m=True, **more)

    for name, code, ext, body in (
        ("two", 320, fields(), two),
        ("two as 310", 310, fields(), two),
        ("320 without the flag", 320, send("BatchT"), two),
        ("without properties", 320, fields(i=""), two),
        ("delayed", 320, fields(i=properties(DELAY="3")), two),
        ("delay 0", 320, fields(i=properties(DELAY="0")), two),
        ("one delayed", 320, fields(), part(b"x", properties(DELAY="3"))),
        ("transactional", 320, fields(f=4), two),
        ("one half", 320, fields(), part(b"x", properties(TRAN_MSG="true"))),
        ("compressed", 320, fields(f=1), two),
        ("no body in one", 320, fields(), part(b"")),
        ("retry topic", 320, fields("%RETRY%BatchG"), two),
        ("topic of 128", 320, fields("t" * 128), two),
        ("unknown topic", 320, fields("BatchNew"), two),
        ("no body", 320, fields(), b""),
        ("one byte", 320, fields(), b"x"),
        ("cut off", 320, fields(), two[:-1]),
        ("cut off early", 320, fields(), part() + b"\0\0"),
        ("queue beyond", 320, fields(e=9), two),
        ("any queue", 320, fields("BatchOne", e=-1, d=1), two),
        ("inner number", 320, fields(i=properties(INNER_NUM="2")), two),
        ("too large", 320, fields(), part(b"x" * (4 << 20))),
        ("many", 320, fields(), part() * 100),
        ("half", 320, fields("BatchOdd", i=properties(TRAN_MSG="true")), two),
        ("timed", 320, fields("BatchOdd", i=properties(TIMER_DELAY_SEC="3")), two),
        ("nothing behind", 320, fields("BatchOdd"), part() + b"\0" * 22),
    ):
        side.ask(name, code, ext, body)
    settled(side)
    side.ask("stored", 11, pull("BatchG", "BatchT"))


def replies(side: Side) -> None:
    """Replies, and how they come to who has asked."""
    make_topic(side, "ReplyT")
    topic = "DefaultCluster_REPLY_TOPIC"

    def own(**more: object) -> str:
        return properties(**{"CORRELATION_ID": "c", "MSG_TYPE": "reply", **more})

    for name, ext, body in (
        ("no client", send(topic, i=own()), b"x"),
        ("client gone", send(topic, i=own(REPLY_TO_CLIENT="nobody")), b"x"),
        ("client empty", send(topic, i=own(REPLY_TO_CLIENT="")), b"x"),
        ("unknown topic", send("Reply_New", c="NoSuch", i=own()), b"x"),
        ("new topic", send("Reply_New", i=own()), b"x"),
        ("any topic", send("ReplyT", i=own()), b"x"),
        ("illegal topic", send("a.b", i=own()), b"x"),
        ("queue beyond", send(topic, 9, i=own()), b"x"),
        ("any queue", send(topic, -1, i=own()), b"x"),
        ("no fields", None, b"x"),
        ("batch", send("ReplyT", i=own(), m=True), b"x"),
        ("no body", send("ReplyT", i=own()), b""),
        ("transactional", send("ReplyT", i=own(), f=4), b"x"),
    ):
        side.ask(name, 325, ext, body)
    asker = side.connect()
    producer = {"clientID": "p1", "producerDataSet": [{"groupName": "ReplyP"}]}
    side.ask("producer", 34, {}, {**producer, "consumerDataSet": []}, on=asker)
    replier = side.connect()
    for name, code, ext in (
        ("by 325", 325, send(topic, i=own(REPLY_TO_CLIENT="p1", TTL="3"))),
        ("by 324", 324, send_long(topic, properties=own(REPLY_TO_CLIENT="p1"))),
        ("refused", 325, send(topic, i=own(REPLY_TO_CLIENT="p1"))),
    ):
        replier.send(command_of(code, ext, b"reply"))
        pushed = asker.request(326)
        side.note(f"pushed {name}", pushed)
        asker.send(answer_to(pushed, {}, code=1 if name == "refused" else 0))
        side.note(f"told {name}", replier.receive(SECONDS))
    settled(side)
    side.ask("stored", 11, pull("ReplyG", "ReplyT"))
    side.ask("stored as replies", 11, pull("ReplyG", topic))
