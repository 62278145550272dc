"""What operators ask, right and wrong, and whatever is asked of nobody."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from rocketbroker.wire.command import BINARY, Command
from rocketbroker.wire.fastjson import dumps, loads
from tests.integration.questions import (
    Ext,
    group_body,
    heartbeat,
    less,
    make_group,
    make_topic,
    of,
    part,
    properties,
    pull,
    send,
    send_long,
    store,
    topic_fields,
)
from tests.integration.sidebyside import SECONDS, Side, answer_to, command_of


def topics(side: Side) -> None:
    """Topics made, changed and deleted."""
    for name, code, ext in (
        ("made", 17, topic_fields("TopicT")),
        ("then", 351, of("topic=TopicT")),
        ("changed", 17, topic_fields("TopicT", 5, perm=4, order=True, topicSysFlag=3)),
        ("changed, then", 351, of("topic=TopicT")),
        ("blank", 17, topic_fields(" ")),
        ("nothing", 17, topic_fields("")),
        ("illegal", 17, topic_fields("a.b")),
        ("long", 17, topic_fields("t" * 128)),
        ("retry", 17, topic_fields("%RETRY%TopicG")),
        ("system", 17, topic_fields("TBW102")),
        ("system by its name", 17, topic_fields("rmq_sys_a")),
        ("cluster", 17, topic_fields("DefaultCluster")),
        ("no fields", 17, None),
        ("deleted", 215, of("topic=TopicT")),
        ("deleted, then", 351, of("topic=TopicT")),
        ("deleted, unknown", 215, of("topic=NoSuch")),
        ("deleted, system", 215, of("topic=TBW102")),
        ("deleted, blank", 215, of(topic=" ")),
        ("statistics", 202, of("topic=TBW102")),
        ("statistics, unknown", 202, of("topic=NoSuch")),
    ):
        side.ask(name, code, ext)
    for more in (
        "topicFilterType=MULTI_TAG", "topicFilterType=X", "perm=0", "perm=7", "perm=8",
        "perm=-1", "readQueueNums=0", "writeQueueNums=0", "order=true",
        "topicSysFlag=1",
        "attributes=+message.type=FIFO", "attributes=+message.type=Other",
        "attributes=+a=b", "attributes=message.type=FIFO", "attributes=-message.type",
        "attributes=+message.type=FIFO,+message.type=NORMAL",
        "attributes=+message.type",
        "attributes=+message.type=MIXED", "attributes=+queue.type=BatchCQ",
        "attributes=", "attributes=+reserve.time=-1", "attributes=+reserve.time=x",
    ):  # fmt: skip
        topic = "Topic_" + "".join(each for each in more if each.isalnum())
        side.ask(f"with {more}", 17, topic_fields(topic, **of(more)))
        side.ask(f"with {more}, then", 351, of(topic=topic))
    typed = "Topic_attributesmessagetypeFIFO"
    for change in ("+message.type=DELAY", "-message.type", "+queue.type=BatchCQ", "-x"):
        side.ask(f"alters {change}", 17, topic_fields(typed, attributes=change))
        side.ask(f"alters {change}, then", 351, of(topic=typed))
    listed = {"topicName": "TopicL", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}
    for text, body in (
        ("list", {"topicConfigList": [{**listed, "topicFilterType": "SINGLE_TAG"}]}),
        ("illegal list", {"topicConfigList": [{**listed, "topicName": "a.b"}]}),
        ("empty list", {"topicConfigList": []}),
    ):
        side.ask(text, 18, {}, body)
    side.ask("list, then", 351, of("topic=TopicL"))


def groups(side: Side) -> None:
    """Groups made, changed and deleted, and how far they are."""
    make_topic(side, "GroupT")
    store(side, "GroupT", 3)
    offset = of("consumerGroup=GroupG topic=GroupT queueId=0")
    for name, code, ext, body in (
        ("made", 200, {}, group_body("GroupG")),
        ("changed", 200, {}, group_body("GroupG", retryMaxTimes=3, brokerId=1)),
        ("then", 352, of("group=GroupG"), b""),
        ("short", 200, {}, {"groupName": "GroupShort"}),
        ("short, then", 352, of("group=GroupShort"), b""),
        ("unknown", 352, of("group=GroupUnknown"), b""),
        ("impossible", 352, of("group=Group.Unknown"), b""),
        ("attributes", 200, {}, group_body("GroupA", attributes={"+a": "b"})),
        ("no body", 200, {}, b""),
        ("garbage", 200, {}, b"x"),
        ("commit", 15, {**offset, "commitOffset": 1}, b""),
        ("progress", 208, of("consumerGroup=GroupG"), b""),
        ("in a topic", 208, of("consumerGroup=GroupG topic=GroupT"), b""),
        ("in an unknown one", 208, of("consumerGroup=GroupG topic=NoSuch"), b""),
        ("of nobody", 208, of("consumerGroup=NoSuch"), b""),
        ("topic's", 202, of("topic=GroupT"), b""),
        ("who consumes", 300, of("topic=GroupT"), b""),
        ("deleted", 207, of("groupName=GroupG cleanOffset=true"), b""),
        ("deleted, then", 14, {**offset, "setZeroIfNotFound": False}, b""),
        ("deleted again", 207, of("groupName=GroupG cleanOffset=false"), b""),
        ("connections", 203, of("consumerGroup=GroupG"), b""),
        ("producers", 204, of("producerGroup=NoSuch"), b""),
    ):
        side.ask(name, code, ext, body)


def resets(side: Side) -> None:
    """Offsets that operators set."""
    make_topic(side, "ResetT")
    make_group(side, "ResetG")
    make_group(side, "ResetH")
    store(side, "ResetT", 4)
    whole = of("group=ResetG topic=ResetT timestamp=-1 isForce=true queueId=-1")
    offset = of("topic=ResetT queueId=0 setZeroIfNotFound=false")
    commit = of("consumerGroup=ResetG topic=ResetT queueId=0 commitOffset=1")
    for name, code, ext in (
        ("to the end", 222, whole),
        ("then", 14, offset | of("consumerGroup=ResetG")),
        ("commit while it is reset", 15, commit),
        ("still", 14, offset | of("consumerGroup=ResetG")),
        ("pull", 11, pull("ResetG", "ResetT")),
        ("pull again", 11, pull("ResetG", "ResetT", 0, 4)),
        ("commit after that", 15, commit),
        ("at last", 14, offset | of("consumerGroup=ResetG")),
    ):
        side.ask(name, code, ext)
    for more in (
        "timestamp=0", "timestamp=4102444800000", "queueId=0 offset=2",
        "queueId=0 offset=4", "queueId=0 offset=5", "queueId=0 offset=6",
        "queueId=0 offset=-1", "queueId=0 offset=-2", "offset=2", "queueId=1",
        "queueId=1 offset=0", "queueId=1 offset=1", "queueId=1 offset=2", "queueId=-2",
        "group=NoSuch", "topic=NoSuch", "isForce=false timestamp=0",
    ):  # fmt: skip
        side.ask(f"reset {more}", 222, whole | of(more))
        side.ask(f"reset {more}, then", 14, offset | of("consumerGroup=ResetG"))
    side.ask("no time", 222, less(whole, "timestamp"))
    side.ask("queue beyond", 222, whole | of("topic=ResetOther queueId=9"))
    side.quietly(15, commit | of("consumerGroup=ResetH commitOffset=3"))
    for name, ext in (
        ("clone", of("srcGroup=ResetH destGroup=ResetI topic=ResetT offline=false")),
        ("unknown", of("srcGroup=NoSuch destGroup=ResetK topic=ResetT offline=false")),
        ("nowhere", of("srcGroup=ResetH destGroup=ResetK topic=NoSuch offline=false")),
    ):
        side.ask(name, 314, ext)
        cloned = offset | of(consumerGroup=ext["destGroup"])
        side.ask(f"{name}, then", 14, cloned)
    side.ask("correction", 308, of("compareGroup=ResetH topic=ResetT filterGroups="))
    side.ask("correction, filtered", 308, of("compareGroup=ResetH topic=ResetT"))
    side.ask("nobody", 223, of("group=ResetG topic=ResetT"))


def tables(side: Side) -> None:
    """What only tools ask: queues as they are stored, groups, producers, files."""
    for topic in ("ToolT", "ToolU"):
        make_topic(side, topic)
    make_group(side, "ToolG")
    at = store(side, "ToolT", 3, i=properties(UNIQ_KEY="K", TAGS="a"))
    store(side, "ToolU")
    beat = heartbeat("c1", "ToolG", "ToolT", "a || b")
    side.quietly(34, {}, {**beat, "producerDataSet": [{"groupName": "ToolP"}]})
    side.quietly(15, of("consumerGroup=ToolG topic=ToolT queueId=0 commitOffset=1"))
    queue = of("topic=ToolT queueId=0 index=0 count=2")
    for more in (
        "", "consumerGroup=ToolG", "consumerGroup=NoSuch", "index=2 count=9", "count=0",
        "count=-1", "index=3", "index=9", "index=-1", "queueId=9", "topic=NoSuch",
    ):  # fmt: skip
        side.ask(f"queue {more}", 321, queue | of(more))
    for name, code, ext in (
        ("topics", 343, of("group=ToolG")),
        ("topics of nobody", 343, of("group=NoSuch")),
        ("subscription", 345, of("group=ToolG topic=ToolT")),
        ("subscription to another", 345, of("group=ToolG topic=ToolU")),
        ("subscription of nobody", 345, of("group=NoSuch topic=ToolT")),
        ("may read", 353, of("group=ToolG topic=ToolT")),
        ("may not", 353, of("group=ToolG topic=ToolT readable=false")),
        ("pull", 11, pull("ToolG", "ToolT")),
        ("pull of another", 11, pull("ToolG", "ToolU")),
        ("may read again", 353, of("group=ToolG topic=ToolT readable=true")),
        ("pull again", 11, pull("ToolG", "ToolT", 0, 1)),
        ("unknown may not", 353, of("group=NoSuch topic=NoSuch readable=false")),
        ("expired queues", 306, {}),
        ("unused topics", 316, {}),
        ("then", 321, queue),
        ("comparison", 354, of("topic=ToolT checkStoreTime=0")),
        ("export", 355, of("configType=topics")),
        ("export all", 355, of("configType=topics;subscriptionGroups;consumerOffsets")),
        ("export unknown", 355, of("configType=x")),
        ("export nothing", 355, of(configType="")),
        ("figures unknown", 315, of("statsName=TOPIC_PUT_NUMS statsKey=NoSuch")),
        ("figures of no kind", 315, of("statsName=NO_SUCH statsKey=ToolT")),
        ("resume nothing", 323, of("topic=ToolT msgId=x")),
    ):
        side.ask(name, code, ext)
    side.quietly(401, {}, {"topic": "ToolT", "consumerGroup": "ToolG", "mode": "PULL"})
    for name, code, ext, member, key in (
        ("modes", 402, {}, "messageRequestModeMap", "ToolT"),
        ("producers", 328, {}, "data", "ToolP"),
    ):
        answer = side.quietly(code, ext)
        side.note(name, Command(answer.code, body=dumps(value_of(answer)[member][key])))
    delays = value_of(side.quietly(45))  # They move on all the time.
    side.note("delays", Command(0, body=dumps(sorted(delays))))
    for ordered in ("false", "true"):
        found = value_of(side.quietly(317, of(isOrder=ordered)))["consumeStatsList"]
        of_group = [each for each in found if "ToolG" in each]
        side.note(f"progress, {ordered}", Command(0, body=dumps(of_group)))
    port = int(side.address.rpartition(":")[2])
    side.ask("resume another", 323, of(msgId=f"7F000001{port:08X}{at:016X}"))
    half = properties(UNIQ_KEY="K", TRAN_MSG="true", PGROUP="ToolP")
    sent = side.quietly(310, send("ToolT", f=4, i=half), b"x")
    side.ask("resume", 323, of(msgId=(sent.ext or {})["msgId"]))
    side.quietly(36, of(f"offset={at} group=ToolG delayLevel=0 originTopic=ToolT"))


def figures(side: Side) -> None:
    """What was counted of L{tables} in the last minute; tools ask for it."""
    for name, key, whole in (
        ("TOPIC_PUT_NUMS", "ToolT", 3),
        ("TOPIC_PUT_SIZE", "ToolT", 531),
        ("GROUP_GET_NUMS", "ToolT@ToolG", 5),
        ("GROUP_GET_SIZE", "ToolT@ToolG", 885),
        ("SNDBCK_PUT_NUMS", "ToolT@ToolG", 1),
    ):
        ext = of(statsName=name, statsKey=key)
        side.until(partial(has_counted, whole), 315, **ext)
        side.ask(name, 315, ext)


def has_counted(whole: int, answer: Command) -> bool:
    """Whether that is the sum of the last minute; a sample may be taken between two."""
    return answer.code == 0 and value_of(answer)["statsMinute"]["sum"] == whole


def value_of(answered: Command) -> Any:
    """The JSON of a body."""
    return loads(answered.body)


def relays(side: Side) -> None:
    """What is asked of a member through the broker: 307, 309, 223."""
    make_topic(side, "RelayT")
    make_group(side, "RelayG")
    at = store(side, "RelayT")
    member = side.connect()
    side.quietly(34, {}, heartbeat("c1", "RelayG", "RelayT"), on=member)
    operator = side.connect()
    port = int(side.address.rpartition(":")[2])
    message = f"7F000001{port:08X}{at:016X}"
    who = of("consumerGroup=RelayG clientId=c1")
    for name, code, asked, ext, answer, body in (
        ("information", 307, 307, who | of("jstackEnable=true"), 0, {"a": 1}),
        ("refused", 307, 307, who | of("jstackEnable=false"), 1, {}),
        ("consume", 309, 309, who | of(msgId=message, topic="RelayT"), 0, {"b": 2}),
        ("consume anything", 309, 309, who | of(msgId=message), 0, {}),
        (
            "status",
            223,
            221,
            of("group=RelayG topic=RelayT"),
            0,
            {"messageQueueTable": {}},
        ),
        ("no status", 223, 221, of("group=RelayG topic=RelayT"), 1, {}),
        (
            "one's status",
            223,
            221,
            of("group=RelayG topic=RelayT clientAddr=c1"),
            0,
            {},
        ),
    ):
        operator.send(command_of(code, ext, b""))
        request = member.request(asked)
        (request.ext or {}).pop("msgId", None)
        side.note(f"asked for {name}", request)
        member.send(answer_to(request, body, answer))
        side.note(name, operator.receive(SECONDS))
    away = of("consumerGroup=RelayG clientId=nobody")
    for name, code, ext in (
        ("not online", 307, away | of("jstackEnable=false")),
        ("no group", 307, of("consumerGroup=NoSuch clientId=c1 jstackEnable=false")),
        ("not online for that", 309, away | of(msgId=message)),
        ("no message", 309, who | of(msgId=message[:16] + "0000000100000000")),
        ("no id", 309, who),
        ("no such id", 309, who | of("msgId=x")),
        ("status of nobody", 223, of("group=NoSuch topic=RelayT")),
        ("status of another", 223, of("group=RelayG topic=RelayT clientAddr=c9")),
    ):
        side.ask(name, code, ext)
    second = side.connect()
    side.quietly(34, {}, heartbeat("c2", "RelayG", "RelayT"), on=second)
    side.note("told of the second", member.request(40))
    side.quietly(35, of("clientID=c2 consumerGroup=RelayG"), on=second)
    side.note("told that it has gone", member.request(40))


def strangers(side: Side) -> None:
    """Codes that nobody knows, the other serialization, requests without an answer."""
    make_topic(side, "StrangeT")
    for code in (4711, 0, -1, 1, 105, 999999):
        side.ask(f"code {code}", code, {})
    line = side.connect(BINARY)
    for name, code, ext, body in (
        ("send", 310, send("StrangeT"), b"x"),
        ("long send", 10, send_long("StrangeT"), b"x"),
        ("batch", 320, send("StrangeT", m=True), part() * 2),
        ("pull", 11, pull("StrangeG", "StrangeT", 1), b""),
        ("offset", 14, of("consumerGroup=StrangeG topic=StrangeT queueId=1"), b""),
        ("unknown", 4711, {}, b""),
        ("wrong", 310, send("StrangeT", 9), b"x"),
    ):
        side.ask(f"binary {name}", code, ext, body, on=line)
    silent = (10, 310, 320, 36, 11, 14, 15, 41, 46, 34, 38, 17, 222, 4711)
    side.oneways("oneway", silent, of("topic=StrangeT"), b"{}")


def forms() -> Iterator[tuple[int, Ext, bytes]]:
    """Requests with what they need and nothing else."""
    queue = of("topic=LackT queueId=0")
    consumer = of("consumerGroup=LackG topic=LackT queueId=0")
    named = properties(UNIQ_KEY="K")
    long = less(send_long("LackT", properties=named), "reconsumeTimes", "unitMode")
    short = less(send("LackT", i=named), "j", "k", "l", "m")
    yield from (
        (10, long, b"x"),
        (310, short, b"x"),
        (320, {**short, "m": True}, part()),
        (36, of("offset=0 group=LackG delayLevel=0"), b""),
        (14, consumer, b""),
        (15, {**consumer, "commitOffset": 1}, b""),
        (30, queue, b""),
        (31, queue, b""),
        (32, queue, b""),
        (29, {**queue, "timestamp": 0}, b""),
        (33, of("offset=0"), b""),
        (11, pull("LackG", "LackT"), b""),
        (361, pull("LackG", "LackT"), b""),
        (17, less(topic_fields("LackNew"), "defaultTopic"), b""),
        (329, {}, b""),
        (12, of("topic=T key=k maxNum=9 beginTimestamp=0 endTimestamp=1"), b""),
        (300, of("topic=LackT"), b""),
        (207, of("groupName=LackOther"), b""),
        (222, of("group=LackG topic=LackT timestamp=0 isForce=true"), b""),
        (321, of("topic=LackT queueId=0 index=0 count=1 consumerGroup=LackO"), b""),
        (343, of("group=LackG"), b""),
        (345, of("group=LackG topic=LackT"), b""),
        (353, of("group=LackG topic=LackT readable=true"), b""),
        (354, of("topic=LackT checkStoreTime=0"), b""),
        (355, of("configType=topics"), b""),
    )


def incomplete(side: Side) -> None:
    """Each field missing and, if a number, none."""
    make_topic(side, "LackT")
    make_group(side, "LackG")
    store(side, "LackT", 2)
    for code, ext, body in forms():
        for name, value in ext.items():
            rest = less(ext, name)
            side.ask(f"{code} without {name}", code, rest, body)
            if str(value).isdigit():
                side.ask(f"{code} with no {name}", code, {**rest, name: "x"}, body)
