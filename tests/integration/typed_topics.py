"""Topics of a type, as clients of gRPC need them."""

from __future__ import annotations

import json
from collections.abc import Callable

from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from scripts.lab.servers import ask


def prepare(port: int, topic: str, kind: str, is_ordered: bool) -> None:
    """Make a topic of a type, and its group.

    @param port: the broker's.
    """
    prepare_by(lambda command: ask(port, command), topic, kind, is_ordered)


def prepare_by(
    asked: Callable[[Command], Command],
    topic: str,
    kind: str = "NORMAL",
    is_ordered: bool = False,
) -> None:
    """The same, whoever asks the broker.

    @param asked: the broker's answer to a request.
    """
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": "1" if is_ordered else "4",
        "writeQueueNums": "1" if is_ordered else "4",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
        "attributes": f"+message.type={kind}",
    }
    made = asked(Command(RequestCode.UPDATE_AND_CREATE_TOPIC, fields))
    assert made.code == 0, made.remark
    group = {
        "groupName": f"G_{topic}",
        "consumeEnable": True,
        "consumeMessageOrderly": is_ordered,
        "retryMaxTimes": 16,
    }
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    made = asked(Command(code, {}, json.dumps(group).encode()))
    assert made.code == 0, made.remark
