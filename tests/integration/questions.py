"""The requests of clients and operators, as L{sidebyside<tests.integration.sidebyside>}
sends them: whole and right, but for what a conversation changes.
"""

from __future__ import annotations

import struct
from typing import Any

from rocketbroker.records.hashing import tag_code
from rocketbroker.records.ids import parse_offset_id
from rocketbroker.wire.command import Command
from tests.integration.sidebyside import Side

Ext = dict[str, Any]


def of(text: str = "", **more: Any) -> Ext:
    """The fields C{a=1 b=2}, and more; None leaves one out."""
    found: Ext = {}
    for pair in text.split():
        key, _, value = pair.partition("=")
        found[key] = value
    found.update(more)
    return {key: value for key, value in found.items() if value is not None}


def less(fields: Ext, *names: str) -> Ext:
    """Fields without some of them."""
    return {key: value for key, value in fields.items() if key not in names}


def properties(**own: object) -> str:
    """A property string."""
    return "".join(f"{key}\x01{value}\x02" for key, value in own.items())


def send(topic: str, queue: int = 0, **more: Any) -> Ext:
    """The fields of request 310."""
    return of(
        "a=P c=TBW102 d=4 f=0 g=1700000000000 h=0 j=0 k=false l=16 m=false",
        **{"b": topic, "e": queue, "i": properties(UNIQ_KEY="K", WAIT="true"), **more},
    )


def send_long(topic: str, queue: int = 0, **more: Any) -> Ext:
    """The fields of request 10."""
    fields = "producerGroup=P defaultTopic=TBW102 defaultTopicQueueNums=4 sysFlag=0 "
    fields += "bornTimestamp=1700000000000 flag=3 reconsumeTimes=0 unitMode=false"
    text = properties(UNIQ_KEY="K", TAGS="a")
    return of(fields, **{"topic": topic, "queueId": queue, "properties": text, **more})


def part(body: bytes = b"x", own: str = "") -> bytes:
    """One message of a batch."""
    text = own.encode()
    head = struct.pack(">iiiii", 22 + len(body) + len(text), 0, 0, 5, len(body))
    return head + body + struct.pack(">h", len(text)) + text


def pull(group: str, topic: str, queue: int = 0, offset: int = 0, **more: Any) -> Ext:
    """The fields of request 11."""
    fields = "maxMsgNums=32 sysFlag=4 commitOffset=0 suspendTimeoutMillis=0 "
    fields += "subscription=* subVersion=0 expressionType=TAG"
    place = {"queueId": queue, "queueOffset": offset}
    return of(fields, **{"consumerGroup": group, "topic": topic, **place, **more})


def topic_fields(topic: str, queues: int = 2, **more: Any) -> Ext:
    """The fields of request 17."""
    fields = "defaultTopic=TBW102 perm=6 topicFilterType=SINGLE_TAG topicSysFlag=0"
    counts = {"readQueueNums": queues, "writeQueueNums": queues, "order": False}
    return of(fields, **{"topic": topic, **counts, **more})


def group_body(group: object, **more: Any) -> dict[str, object]:
    """The body of request 200."""
    return {
        "groupName": group,
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "consumeBroadcastEnable": True,
        "retryQueueNums": 1,
        "retryMaxTimes": 16,
        "notifyConsumerIdsChangedEnable": True,
        **more,
    }


def subscription(topic: str, expression: str, kind: str) -> dict[str, object]:
    """What a heartbeat says of one topic."""
    tags = [] if kind != "TAG" or expression == "*" else expression.split(" || ")
    return {
        "classFilterMode": False,
        "codeSet": [tag_code(tag) for tag in tags],
        "expressionType": kind,
        "subString": expression,
        "subVersion": 1700000000000,
        "tagsSet": tags,
        "topic": topic,
    }


def heartbeat(
    client: str,
    group: str,
    topic: str,
    expression: str = "*",
    kind: str = "TAG",
    **more: Any,
) -> dict[str, object]:
    """The body of request 34."""
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": [subscription(topic, expression, kind)],
        "unitMode": False,
        **more,
    }
    return {
        "clientID": client,
        "consumerDataSet": [consumer],
        "producerDataSet": [],
        "heartbeatFingerprint": 0,
        "withoutSub": False,
    }


def make_topic(side: Side, topic: str, queues: int = 2, **more: Any) -> None:
    """Make a topic."""
    assert side.quietly(17, topic_fields(topic, queues, **more)).code == 0, topic


def make_group(side: Side, group: str, **more: Any) -> None:
    """Make a group."""
    assert side.quietly(200, {}, group_body(group, **more)).code == 0, group


def store(side: Side, topic: str, count: int = 1, **more: Any) -> int:
    """Store messages in queue 0, and wait until consumers see them.

    @return: where the last one stands in the log.
    """
    for _ in range(count):
        sent = side.quietly(310, send(topic, **more), b"x")
        assert sent.code == 0, sent
    end = int((sent.ext or {})["queueOffset"]) + 1
    visible(side, topic, end)
    return parse_offset_id((sent.ext or {})["msgId"]).position


def visible(side: Side, topic: str, end: int, queue: int = 0) -> None:
    """Wait until a queue has so many."""

    def has(answer: Command) -> bool:
        return int((answer.ext or {}).get("offset", 0)) >= end

    side.until(has, 30, topic=topic, queueId=queue)


def settled(side: Side) -> None:
    """Wait until consumers see all that was stored: brokers go by the log."""
    store(side, "SettledT")
