"""What official clients observe of a broker: statuses, codes, counts, properties.

Each scenario has the name of one of the interop kit's and does what an application of
that kind does, with topics and groups of fixed names on a fresh broker; it asserts
nothing, and notes what comes of each step. Two brokers are alike if the notes are.
What differs from run to run, such as ids, times and which of four queues, is left out.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final

from scripts.lab.javaclient import JavaError, body_of, encoded
from scripts.torture.stage import BROKER, QUIET, Stage, numbered, shown

#: What tools read of the runtime information of a broker.
RUNTIME: Final = """
bootTimestamp brokerVersion brokerVersionDesc commitLogMaxOffset commitLogMinOffset
earliestMessageTimeStamp getFoundTps getMissTps getTotalTps getTransferredTps
msgGetTotalTodayMorning msgGetTotalTodayNow msgGetTotalYesterdayMorning
msgPutTotalTodayMorning msgPutTotalTodayNow msgPutTotalYesterdayMorning
pageCacheLockTimeMills pullThreadPoolQueueSize putMessageDistributeTime
putMessageTimesTotal putTps runtime sendThreadPoolQueueSize
""".split()

#: Settings that applications depend on.
SETTINGS: Final = """
autoCreateSubscriptionGroup autoCreateTopicEnable brokerClusterName brokerId brokerName
brokerPermission brokerRole defaultTopicQueueNums deleteWhen enablePropertyFilter
fileReservedTime flushDiskType longPollingEnable maxMessageSize messageDelayLevel
rejectTransactionMessage traceTopicEnable transactionCheckInterval transactionCheckMax
transactionTimeOut useServerSideResetOffset
""".split()


def send_receive(stage: Stage) -> None:
    """One after the other, and all of it received."""
    topic, bodies = stage.topic(), numbered(20)
    words: dict[str, Any] = {"tags": "A", "keys": "k1 k2", "properties": {"n": "1"}}
    stage.note("statuses", stage.sent(topic, bodies, **words))
    stage.note("received", shown(stage.received(stage.consumer(topic), 20)))
    stats = stage.ask("topicStats", topic=topic).values()
    stage.note("stored", sum(row["maxOffset"] - row["minOffset"] for row in stats))


def send_async(stage: Stage) -> None:
    """With a callback; and to one queue, whose offsets are dense."""
    topic, name = stage.topic(), stage.producer()
    words: dict[str, Any] = {"name": name, "mode": "async"}
    stage.note("statuses", stage.sent(topic, numbered(50), **words))
    words = {"broker": BROKER, "queue": 2}
    first = stage.java.send(name, topic, b"x", **words)["offset"]
    more = [stage.java.send(name, topic, b"x", **words)["offset"] for _ in range(9)]
    stage.note("offsets", [offset - first for offset in more])


def send_oneway(stage: Stage) -> None:
    """Nobody is answered, all is stored."""
    topic, name = stage.topic(), stage.producer()
    for body in numbered(20):
        stage.java.send(name, topic, body, mode="oneway")
    stage.note("received", shown(stage.received(stage.consumer(topic), 20)))


def send_batch(stage: Stage) -> None:
    """Twenty at once, for one queue."""
    topic, name = stage.topic(1), stage.producer()
    batch = [{"body": encoded(b), "tags": "B", "keys": "k"} for b in numbered(20)]
    answer = stage.java("sendBatch", name=name, topic=topic, messages=batch)
    ids = [len(answer[key].split(",")) for key in ("msgId", "offsetMsgId")]
    stage.note("answer", [answer["status"], answer["offset"], ids])
    stage.note("received", shown(stage.received(stage.consumer(topic), 20)))
    stage.note("next", stage.pull(topic, 17))


def auto_create(stage: Stage) -> None:
    """The first message makes the topic."""
    topic = "T-nobody-made"
    stage.note("statuses", stage.sent(topic, [b"first"]))
    stage.there(lambda: stage.ask("route", topic=topic))
    stage.note("config", stage.ask("topicConfig", topic=topic))
    stage.note("queues", len(stage.ask("topicStats", topic=topic)))


def compressed(stage: Stage) -> None:
    """A body that the client compresses."""
    topic, name = stage.topic(1), stage.producer(compressOver=1024)
    body = b"compress me " * 5000
    stage.note("statuses", stage.sent(topic, [body], name=name))
    stage.note("received", shown(stage.received(stage.consumer(topic), 1)))


def too_large(stage: Stage) -> None:
    """Around the largest size, with what clients and brokers say of it."""
    topic = stage.topic(1)
    words: dict[str, Any] = {
        "compressOver": 1 << 30,
        "maxMessageSize": 16 << 20,
        "retries": 0,
    }
    name = stage.producer(**words)
    noise = random.Random(1).randbytes(5 << 20)
    for size in (4 << 20, (4 << 20) + 1, 5 << 20):
        body = noise[:size]
        stage.tried(f"{size} bytes", stage.sent, topic, [body], name=name)
    stage.note("after", stage.sent(topic, [b"still alive"], name=name))


def long_poll(stage: Stage) -> None:
    """A consumer that waits has a new message at once."""
    topic, name = stage.topic(1), stage.producer()
    consumer = stage.consumer(topic)
    stage.sent(topic, [b"first"], name=name)
    stage.received(consumer, 1)
    stage.sent(topic, [b"second"], name=name)
    got = stage.received(consumer, 2)
    stage.note("received", shown(got))
    stage.note("within a second", got[-1]["at"] - got[-1]["stored"] < 1000)


def pull(stage: Stage) -> None:
    """Everywhere in a queue, and where there is none."""
    topic = stage.topic(2)
    words = {"broker": BROKER, "queue": 0, "tags": "A"}
    stage.sent(topic, numbered(40), **words)
    for offset in (0, 30, 39, 40, 41, 1000, -1):
        stage.tried(f"at {offset}", stage.pull, topic, offset)
    for tags in ("A", "B", "A || B"):
        stage.tried(tags, stage.pull, topic, 0, tags)
    for offset in (0, 5):
        stage.tried(f"empty queue at {offset}", stage.pull, topic, offset, queue=1)
    stage.tried("no such queue", stage.pull, topic, 0, queue=7)
    stage.tried("no such topic", stage.pull, "T-none", 0)
    for queue in (0, 1):
        place = {"topic": topic, "queue": queue}
        bounds = [stage.ask(what, **place) for what in ("minOffset", "maxOffset")]
        stage.note(f"bounds of {queue}", bounds)


def lite_pull(stage: Stage) -> None:
    """A client that polls."""
    topic = stage.topic()
    stage.sent(topic, numbered(30))
    words = {"group": stage.group(), "topic": topic, "atLeast": 30, "timeoutMs": 60000}
    stage.note("polled", shown(stage.java("litePull", **words)))


def tags(stage: Stage) -> None:
    """Two of three tags."""
    topic, name = stage.topic(2), stage.producer()
    for tag in ("T0", "T1", "T2"):
        stage.sent(topic, numbered(5, tag), name=name, tags=tag)
    stage.sent(topic, [b"none"], name=name)
    consumer = stage.consumer(topic, tags="T0 || T2")
    stage.note("received", shown(stage.received(consumer, 10)))


def sql92(stage: Stage) -> None:
    """What an expression wants, and one that makes no sense."""
    topic, name = stage.topic(2), stage.producer()
    for number in range(20):
        kind = {"a": str(number), "c": "odd" if number % 2 else "even"}
        stage.sent(topic, [b"%02d" % number], name=name, properties=kind, tags="S")
    sql = "a BETWEEN 5 AND 15 AND c IN ('even') AND TAGS IS NOT NULL"
    stage.note("received", shown(stage.received(stage.consumer(topic, sql=sql), 5)))
    bad = {"name": "bad", "group": "G-bad", "topic": topic, "sql": "a >"}
    stage.tried("nonsense", stage.java, "consumer", **bad)


def orderly(stage: Stage) -> None:
    """In order, though one is refused at first."""
    topic, name = stage.topic(), stage.producer()
    for queue in range(4):
        bodies = numbered(10, f"{queue}/")
        stage.sent(topic, bodies, name=name, broker=BROKER, queue=queue)
    words: dict[str, Any] = {"orderly": True, "suspendOnceAt": encoded(b"1/05")}
    got = stage.received(stage.consumer(topic, **words), 40)
    for queue in range(4):
        found = [body_of(m).decode() for m in got if m["queue"] == queue]
        stage.note(f"queue {queue}", found)
    stage.note("received", shown(got))


def broadcast(stage: Stage) -> None:
    """Each member gets everything."""
    topic = stage.topic()
    names = [stage.consumer(topic, n, model="BROADCASTING") for n in ("C1", "C2")]
    time.sleep(2)
    stage.sent(topic, numbered(10))
    for name in names:
        stage.note(name, shown(stage.received(name, 10)))


def cluster_share(stage: Stage) -> None:
    """Two members share, then one has all."""
    topic = stage.topic()
    names = [stage.consumer(topic, name) for name in ("C1", "C2")]

    def shares(*names: str) -> list[int]:
        prefix = f"{topic}/"
        return [
            sum(queue.startswith(prefix) for queue in stage.java("queues", name=name))
            for name in names
        ]

    stage.there(lambda: shares(*names) == [2, 2])
    stage.note("queues of two", shares(*names))
    stage.sent(topic, numbered(40))
    stage.there(lambda: sum(len(stage.java.received(name, 0)) for name in names) >= 40)
    time.sleep(QUIET)
    got = [message for name in names for message in stage.java.received(name, 0)]
    stage.note("received", shown(got))
    stage.stop(names[1])
    stage.there(lambda: shares(names[0]) == [4])
    stage.note("queues of one", shares(names[0]))


def retry(stage: Stage) -> None:
    """Two failures, then success."""
    topic = stage.topic(1)
    consumer = stage.consumer(topic, failUntil=2, level=1)
    stage.sent(topic, [b"hard"], tags="red", keys="k", properties={"a": "b"})
    stage.note("received", shown(stage.received(consumer, 3)))
    retries = f"%RETRY%{stage.group()}"
    stage.note("retry topic", stage.ask("topicConfig", topic=retries))


def dead_letter(stage: Stage) -> None:
    """One failure more than the consumer allows."""
    topic = stage.topic(1)
    consumer = stage.consumer(topic, failUntil=99, level=1, mostTimes=1)
    stage.sent(topic, [b"doomed"], tags="red", keys="k")
    dead = f"%DLQ%{stage.group()}"
    stage.there(lambda: stage.pull(dead, 0))
    stage.note("received", shown(stage.received(consumer, 2)))
    stage.note("dead", stage.pull(dead, 0))
    stage.note("its topic", stage.ask("topicConfig", topic=dead))


def delay_level(stage: Stage) -> None:
    """Not before their time, and as what they were sent."""
    topic, name = stage.topic(), stage.producer()
    for level in (1, 2):
        words = {"name": name, "delayLevel": level, "tags": "late", "keys": "k"}
        stage.note(f"level {level}", stage.sent(topic, [b"%d" % level], **words))
    got = stage.received(stage.consumer(topic), 2)
    stage.note("received", shown(got))
    waits = {body_of(m): m["stored"] - m["born"] for m in got}
    times = {b"1": 1000, b"2": 5000}
    in_time = [times[b] <= wait < times[b] + 1500 for b, wait in waits.items()]
    stage.note("in time", in_time)


def transaction(stage: Stage) -> None:
    """Committed, rolled back, and asked about both ways."""
    topic, name = stage.topic(), stage.group("P")
    stage.java("transactionalProducer", name=name, group=name)
    consumer = stage.consumer(topic)
    ends = ("COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW")
    for local, checked in (
        (ends[0], ends[2]),
        (ends[1], ends[2]),
        (ends[2], ends[0]),
        (ends[2], ends[1]),
    ):
        words = {"local": local, "checked": checked}
        answer = stage.java(
            "sendInTransaction",
            name=name,
            topic=topic,
            body=encoded(f"{local} {checked}".encode()),
            tags="t",
            keys="k",
            properties={**words, "CHECK_IMMUNITY_TIME_IN_SECONDS": "2"},
        )
        stage.note(f"{local} {checked}", [answer["status"], answer["local"]])
    # In RocketMQ what was asked about comes with WAIT=false, if it was no longer young.
    stage.note("received", shown(stage.received(consumer, 2), "WAIT"))
    stage.java("stop", name=name)


def request_reply(stage: Stage) -> None:
    """A question and its reply; and one that nobody answers."""
    topic, asker, replier = stage.topic(1), stage.producer(), stage.producer("R")
    stage.consumer(topic, replyBy=replier, replyTimes=3)
    words = {"name": asker, "body": encoded(b"ping ")}
    answer = stage.java("request", topic=topic, timeoutMs=30000, **words)
    stage.note("reply", body_of(answer).decode())
    stage.note("properties", sorted(answer["properties"]))
    silent = "T-nobody-answers"
    address = stage.address
    stage.java("createTopic", topic=silent, queues=1, address=address)
    stage.tried(
        "nobody answers",
        stage.java,
        "request",
        topic=silent,
        timeoutMs=1000,
        **words,
    )


def query(stage: Stage) -> None:
    """By key, by unique key, by id, and what is not there."""
    topic, name = stage.topic(1), stage.producer()
    words = {"keys": "order-77 alias-77"}
    answer = stage.java.send(name, topic, b"find me", **words)
    stage.sent(topic, numbered(5), name=name, keys="noise")

    def found(key: str) -> int:
        return len(stage.java("query", topic=topic, key=key, most=10))

    stage.there(lambda: found("alias-77"))
    stage.there(lambda: found("noise") == 5)
    for key in ("alias-77", "order-77", "noise", "nothing"):
        stage.tried(key, found, key)
    for kind in ("msgId", "offsetMsgId"):
        place = {"topic": topic, "message": answer[kind]}
        stage.tried(kind, lambda at: stage.ask("view", **at) == answer["msgId"], place)


def offsets(stage: Stage) -> None:
    """By time, committed, not again after a restart, and reset."""
    topic, name = stage.topic(1), stage.producer()
    stage.sent(topic, numbered(10, "first-"), name=name)
    time.sleep(1.2)
    middle = int(time.time() * 1000)
    time.sleep(1.2)
    stage.sent(topic, numbered(10, "second-"), name=name)
    consumer = stage.consumer(topic)
    stage.note("received", len(stage.received(consumer, 20)))
    place = {"topic": topic, "queue": 0}
    for step, at in (("before", 0), ("middle", middle), ("after", middle + 60000)):
        stage.tried(step, stage.ask, "searchOffset", time=at, **place)

    def committed() -> list[object]:
        rows = stage.ask("consumeStats", topic=topic, group=stage.group())
        return [[row["consumerOffset"], row["brokerOffset"]] for row in rows.values()]

    stage.there(lambda: committed() == [[20, 20]])
    stage.note("committed", committed())
    stage.stop(consumer)
    stage.there(lambda: gone(stage))
    again = stage.consumer(topic, "C2")
    stage.note("after a restart", len(stage.received(again, 0)))
    words = {"topic": topic, "group": stage.group()}
    moved = stage.ask("reset", time=middle, **words)
    stage.note("reset to", list(moved.values()))
    bodies = [body_of(message).decode() for message in stage.received(again, 10)]
    stage.note("after a reset", sorted(bodies))


def gone(stage: Stage) -> bool:
    """Whether the group has no members."""
    try:
        return not stage.clients()
    except JavaError:
        return True


def topic_lifecycle(stage: Stage) -> None:
    """Made, seen, deleted, not there."""
    topic = stage.topic(3)
    stage.there(lambda: stage.ask("route", topic=topic))
    stage.note("config", stage.ask("topicConfig", topic=topic))
    queues = stage.ask("route", topic=topic)["queueDatas"]
    stage.note("route", queues)
    stage.note("listed", topic in stage.ask("topics"))
    stage.java("deleteTopic", topic=topic, address=stage.address)
    for what in ("route", "topicConfig", "topicStats"):
        stage.tried(f"{what} after", stage.ask, what, topic=topic)
    stage.note("listed after", topic in stage.ask("topics"))


def admin_tables(stage: Stage) -> None:
    """What an operator sees of a topic, a group and the broker."""
    topic, group, name = stage.topic(2), stage.group(), stage.producer()
    # To both queues: of an empty one a group has no offset in RocketMQ.
    for queue in (1, 0):
        answer = stage.java.send(name, topic, b"x", broker=BROKER, queue=queue)
    stage.received(stage.consumer(topic), 2)
    there = {"topic": topic, "group": group}
    stats = stage.ask("topicStats", topic=topic).values()
    rows = [[row["minOffset"], row["maxOffset"]] for row in stats]
    stage.note("topic", sorted(rows))
    stage.there(lambda: group in stage.ask("groups", topic=topic))
    stage.note("groups", stage.ask("groups", topic=topic))
    stage.note("group", stage.ask("groupConfig", group=group))
    found = stage.ask("connections", group=group)
    members = found.pop("connectionSet")
    for subscription in found["subscriptionTable"].values():
        subscription["subVersion"] = "..."
    stage.note("connections", [len(members), sorted(members[0]), found])
    stage.note("producers", len(stage.ask("producers", topic=topic, group=name)))
    words = {"group": group, "client": members[0]["clientId"]}
    info = stage.ask("runningInfo", **words)
    # That of the retry topic comes when the client learns of it.
    queues = sum(f"topic={topic}," in queue for queue in info["mqTable"])
    stage.note("running info", [sorted(info), queues])
    status = stage.ask("consumeStatus", **there)
    stage.note("consume status", [list(one.values()) for one in status.values()])
    words = {**words, "topic": topic, "message": answer["msgId"]}
    stage.there(lambda: stage.ask("view", topic=topic, message=answer["msgId"]))
    direct = stage.ask("directly", **words)
    stage.note("directly", {**direct, "spentTimeMills": "..."})
    runtime, settings = stage.ask("runtime"), stage.ask("settings")
    stage.note("runtime", [key for key in RUNTIME if key in runtime])
    stage.note("settings", {key: settings.get(key) for key in SETTINGS})
    for what in ("connections", "consumeStats", "groupConfig", "topicStats", "groups"):
        nothing = {"topic": "T-none", "group": "G-none"}
        stage.tried(f"{what} of none", stage.ask, what, **nothing)


#: All of them, by the names that the kit's have.
SCENARIOS: Final[dict[str, Callable[[Stage], None]]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        send_receive,
        send_async,
        send_oneway,
        send_batch,
        auto_create,
        compressed,
        too_large,
        long_poll,
        pull,
        lite_pull,
        tags,
        sql92,
        orderly,
        broadcast,
        cluster_share,
        retry,
        dead_letter,
        delay_level,
        transaction,
        request_reply,
        query,
        offsets,
        topic_lifecycle,
        admin_tables,
    )
}
