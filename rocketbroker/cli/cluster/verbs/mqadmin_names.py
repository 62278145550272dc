# -*- test-case-name: tests.cli.cluster.verbs.test_mqadmin -*-
"""The commands of RocketMQ's mqadmin, and the calls of our verbs that they become.

All 89 names of 5.3.3 are here (C{docs/facts/admin.md} 6): for those that have no verb a
sentence says why, or what to use instead.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from rocketbroker.cli.cluster.verbs.mqadmin_access import ACCESS
from rocketbroker.cli.cluster.verbs.mqadmin_translation import (
    Call,
    Translation,
    Values,
    broker,
    place,
)
from rocketbroker.cli.exit_status import USAGE, Failure


def static_place(values: Values) -> Call:
    """The brokers of a static topic: all of C{-b}, or the cluster of C{-c}. C{-mf} and
    C{-fr} have no effect in mqadmin either."""
    if "c" in values:
        return ["--cluster", values["c"]]
    names = values.get("b", "").split(",")
    return [word for name in names if name for word in ("--broker", name)]


def topic_settings(values: Values, is_new: bool) -> Call:
    """Queues and permission of updateTopic."""
    perms = {"2": "w", "4": "r", "6": "rw"}
    words = []
    if is_new:
        words += ["--queues", values.get("w", values.get("r", "8"))]
    else:
        words += ["--read-queues", values["r"]] if "r" in values else []
        words += ["--write-queues", values["w"]] if "w" in values else []
    if "p" in values:
        if values["p"] not in perms:
            raise Failure("-p is 2 (write), 4 (read) or 6 (both).", USAGE)
        words += ["--perm", perms[values["p"]]]
    for change in map(str.strip, values.get("a", "").split(",")):
        if change:
            name = change.lstrip("+-")
            words += ["--attribute", f"{name}=" if change.startswith("-") else name]
    return words


def update_topic(values: Values) -> list[Call]:
    """Made if it is not there, or else changed."""
    return [
        ["topic", "create", values["t"], *place(values), *topic_settings(values, True)],
        [
            "topic",
            "update",
            values["t"],
            *place(values),
            *topic_settings(values, False),
            "--yes",
        ],
    ]


def update_group(values: Values) -> list[Call]:
    """Made if it is not there, or else changed."""
    words = [values["g"], *place(values)]
    for letter, yes, no in (
        ("s", "--consume", "--no-consume"),
        ("d", "--broadcast", "--no-broadcast"),
    ):
        if letter in values:
            words.append(yes if values[letter].lower() == "true" else no)
    for letter, option in (("q", "--retry-queues"), ("r", "--retries")):
        if letter in values:
            words += [option, values[letter]]
    return [["group", verb, *words] for verb in ("create", "update")]


def delete_group(values: Values) -> list[Call]:
    """Everywhere, or in a cluster; not on a single broker."""
    if "b" in values:
        raise Failure(
            "A group is deleted in a whole cluster: give -c instead of -b.", USAGE
        )
    return [["group", "delete", values["g"], *place(values), "--yes"]]


def order_conf(values: Values) -> list[Call]:
    """The settings of ordered topics at the name servers."""
    verb, words = values["m"], ["ORDER_TOPIC_CONFIG", values["t"]]
    if verb == "put":
        return [["kv", "set", *words, values.get("v", "")]]
    if verb == "delete":
        return [["kv", "delete", *words, "--yes"]]
    return [["kv", "get", *words]]


def moment(text: str) -> str:
    """A time as mqadmin takes it, as our verbs take it."""
    if text == "-1":
        return "latest"
    if text == "0":
        return "earliest"
    if re.fullmatch(r"\d{4}-\d\d-\d\d#\d\d:\d\d:\d\d:\d{3}", text):
        return datetime.strptime(text, "%Y-%m-%d#%H:%M:%S:%f").isoformat()
    return text


def reset(values: Values) -> list[Call]:
    """A group, or one queue of it with C{-b -q -o}."""
    if "o" in values:
        queue = f"{broker(values)}:{values.get('q', '0')}"
        words = [values["g"], values["t"], queue, values["o"]]
        return [["offset", "set", *words, "--yes"]]
    words = [values["g"], values["t"], "--to", moment(values["s"])]
    return [["group", "reset", *words, "--yes"]]


def show_messages(values: Values) -> list[Call]:
    """The messages of a topic, or of one queue, in a span of time."""
    words = ["message", "find", values["t"]]
    for letter, option in (("b", "--from"), ("e", "--until")):
        if letter in values:
            words += [option, moment(values[letter])]
    if "a" in values:
        words += ["--queue", f"{values['a']}:{values.get('i', '0')}"]
    if values.get("s", "*") != "*":
        words += ["--tag", values["s"]]
    return [words]


def messages_with_key(values: Values) -> list[Call]:
    """The messages with a key, in a span of time."""
    words = ["message", "find", values["t"], "--key", values["k"]]
    words += ["--count", values.get("m", "64")]
    for letter, option in (("b", "--from"), ("e", "--until")):
        if values.get(letter, "0") != "0":
            words += [option, moment(values[letter])]
    return [words]


def send(values: Values) -> list[Call]:
    """One message."""
    words = ["message", "send", values["t"], values["p"]]
    for letter, option in (("c", "--tag"), ("k", "--key")):
        if letter in values:
            words += [option, values[letter]]
    if "b" in values:
        words += ["--queue", f"{values['b']}:{values.get('i', '0')}"]
    return [words]


def consume(values: Values) -> list[Call]:
    """Messages, without or with a group."""
    words = ["message", "receive", values["t"], "--count", values.get("c", "128")]
    words += ["--output", "jsonl"]
    if "g" in values:
        words += ["--group", values["g"]]
    if "b" in values:
        words += ["--queue", f"{values['b']}:{values.get('i', '0')}"]
    if "s" in values:
        words += ["--from", moment(values["s"])]
    return [words]


def replicas(values: Values) -> list[Call]:
    """How replication is, again and again if that is wanted."""
    words = [values["b"]] if "b" in values else []
    words += ["--cluster", values["c"]] if "c" in values else []
    words += ["--watch", "--every", values["i"]] if "i" in values else []
    return [["broker", "replicas", *words]]


def clean(what: str) -> Translation:
    """One of the three removals."""
    return Translation(
        "b/brokerAddr c/cluster",
        lambda v: [["broker", "clean", broker(v), f"--{what}", "--yes"]],
    )


_CONTROLLER: Final = "It is about controllers, which rocketbroker does not have yet."
_POP: Final = "It is about POP consumption, which this tool does not serve yet."
_ROCKSDB: Final = "It is about RocksDB, which rocketbroker does not use."
_CONTAINER: Final = "It is about containers of brokers, which this tool does not serve."
_COLD: Final = "It is about cold data flow control, which this tool does not serve yet."
_TRACE: Final = "This tool does not read message traces."
_FILES: Final = "Give a topic or a group at a time: "

#: What we have. The letters of options are mqadmin's.
COMMANDS: Final[dict[str, Translation]] = {
    **ACCESS,
    "updateTopic": Translation(
        "t/topic* b/brokerAddr c/clusterName r/readQueueNums w/writeQueueNums p/perm "
        "o/order u/unit s/hasUnitSub a/attributes",
        update_topic,
        fallback=True,
    ),
    "deleteTopic": Translation(
        "t/topic* c/clusterName*",
        lambda v: [["topic", "delete", v["t"], "--cluster", v["c"], "--yes"]],
    ),
    "updateTopicPerm": Translation(
        "t/topic* p/perm* b/brokerAddr c/clusterName",
        lambda v: [
            [
                "topic",
                "update",
                v["t"],
                *place(v),
                *topic_settings({"p": v["p"]}, False),
            ]
        ],
    ),
    "topicRoute": Translation(
        "t/topic* l/list?", lambda v: [["topic", "show", v["t"]]]
    ),
    "topicStatus": Translation(
        "t/topic* c/cluster", lambda v: [["offset", "show", v["t"]]]
    ),
    "topicClusterList": Translation("t/topic*", lambda v: [["topic", "show", v["t"]]]),
    "topicList": Translation(
        "c/clusterModel?",
        lambda v: [["topic", "ls", "--all", *([] if "c" in v else ["--names"])]],
    ),
    "updateStaticTopic": Translation(
        "t/topic* qn/totalQueueNum* b/brokers c/clusters mf/mapFile fr/forceReplace",
        lambda v: [["topic", "create-static", v["t"], "-q", v["qn"], *static_place(v)]],
    ),
    "remappingStaticTopic": Translation(
        "t/topic* b/brokers c/clusters mf/mapFile fr/forceReplace",
        lambda v: [["topic", "move", v["t"], *static_place(v), "--yes"]],
    ),
    "updateSubGroup": Translation(
        "g/groupName* b/brokerAddr c/clusterName s/consumeEnable "
        "m/consumeFromMinEnable d/consumeBroadcastEnable q/retryQueueNums "
        "r/retryMaxTimes",
        update_group,
        fallback=True,
    ),
    "deleteSubGroup": Translation(
        "g/groupName* b/brokerAddr c/clusterName r/removeOffset",
        delete_group,
    ),
    "getConsumerConfig": Translation(
        "g/groupName*", lambda v: [["group", "show", v["g"]]]
    ),
    "updateOrderConf": Translation("t/topic* m/method* v/orderConf", order_conf),
    "updateBrokerConfig": Translation(
        "k/key* v/value* b/brokerAddr c/clusterName a/updateAllBroker?",
        lambda v: [["broker", "set", broker(v), f"{v['k']}={v['v']}", "--yes"]],
    ),
    "getBrokerConfig": Translation(
        "b/brokerAddr c/clusterName", lambda v: [["broker", "settings", broker(v)]]
    ),
    "brokerStatus": Translation(
        "b/brokerAddr c/clusterName",
        lambda v: [["broker", "status", broker(v), "--all"]],
    ),
    "brokerConsumeStats": Translation(
        "b/brokerAddr* t/timeoutMillis l/level o/order",
        lambda v: [["group", "ls", "--all"]],
    ),
    "cleanExpiredCQ": clean("queues"),
    "deleteExpiredCommitLog": clean("log"),
    "cleanUnusedTopic": clean("topics"),
    "producer": Translation("b/broker*", lambda v: [["producer", "ls"]]),
    "queryMsgById": Translation(
        "i/msgId* t/topic g/consumerGroup d/clientId c/cluster",
        lambda v: [message_view(v, each) for each in v["i"].split(",")],
    ),
    "queryMsgByUniqueKey": Translation(
        "i/msgId* t/topic* g/consumerGroup d/clientId a/showAll? c/cluster",
        lambda v: [message_view(v, v["i"])],
    ),
    "queryMsgByKey": Translation(
        "t/topic* k/msgKey* b/beginTimestamp e/endTimestamp m/maxNum c/cluster",
        messages_with_key,
    ),
    "queryMsgByOffset": Translation(
        "t/topic* b/brokerName* i/queueId* o/offset* f/bodyFormat",
        lambda v: [
            ["message", "find", v["t"], "--queue", f"{v['b']}:{v['i']}"]
            + ["--offset", v["o"], "--count", "1"]
        ],
    ),
    "printMsg": Translation(
        "t/topic* c/charsetName s/subExpression b/beginTimestamp e/endTimestamp "
        "d/printBody l/lmqParentTopic",
        show_messages,
    ),
    "printMsgByQueue": Translation(
        "t/topic* a/brokerName* i/queueId* c/charsetName s/subExpression "
        "b/beginTimestamp e/endTimestamp p/print d/printBody f/calculate",
        show_messages,
    ),
    "sendMessage": Translation(
        "t/topic* p/body* k/key c/tags b/broker i/qid m/msgTraceEnable", send
    ),
    "consumeMessage": Translation(
        "t/topic* b/brokerName i/queueId o/offset g/consumerGroup s/beginTimestamp "
        "e/endTimestamp c/consumerCount",
        consume,
    ),
    "consumerConnection": Translation(
        "g/consumerGroup* b/brokerAddr", lambda v: [["consumer", "ls", v["g"]]]
    ),
    "producerConnection": Translation(
        "g/producerGroup* t/topic*", lambda v: [["producer", "ls", v["g"]]]
    ),
    "consumerProgress": Translation(
        "g/groupName t/topicName s/showClientIP c/cluster",
        lambda v: [["group", "show", v["g"]] if "g" in v else ["group", "ls"]],
    ),
    "consumerStatus": Translation(
        "g/consumerGroup* i/clientId b/brokerAddr s/jstack?",
        lambda v: [
            ["consumer", "show", v["g"], v["i"]]
            if "i" in v
            else ["group", "show", v["g"]]
        ],
    ),
    "cloneGroupOffset": Translation(
        "s/srcGroup* d/destGroup* t/topic* o/offline",
        lambda v: [["offset", "clone", v["s"], v["d"], v["t"], "--yes"]],
    ),
    "resetOffsetByTime": Translation(
        "g/group* t/topic* s/timestamp* f/force c/cluster b/broker q/queue o/offset",
        reset,
    ),
    "skipAccumulatedMessage": Translation(
        "g/group* t/topic* f/force c/cluster",
        lambda v: [["group", "reset", v["g"], v["t"], "--to", "latest", "--yes"]],
    ),
    "updateKvConfig": Translation(
        "s/namespace* k/key* v/value*",
        lambda v: [["kv", "set", v["s"], v["k"], v["v"]]],
    ),
    "deleteKvConfig": Translation(
        "s/namespace* k/key*",
        lambda v: [["kv", "delete", v["s"], v["k"], "--yes"]],
    ),
    "wipeWritePerm": Translation(
        "b/brokerName*", lambda v: [["namesrv", "wipe", v["b"], "--yes"]]
    ),
    "addWritePerm": Translation(
        "b/brokerName*", lambda v: [["namesrv", "permit", v["b"]]]
    ),
    "getNamesrvConfig": Translation("", lambda v: [["namesrv", "settings"]]),
    "updateNamesrvConfig": Translation(
        "k/key* v/value*",
        lambda v: [["namesrv", "set", f"{v['k']}={v['v']}", "--yes"]],
    ),
    "haStatus": Translation("c/clusterName b/brokerAddr i/interval", replicas),
    "resetMasterFlushOffset": Translation(
        "b/brokerAddr* o/offset*",
        lambda v: [["broker", "reset-master-flush-offset", v["b"], v["o"], "--yes"]],
    ),
    "clusterList": Translation(
        "m/moreStats? i/interval c/clusterName",
        lambda v: [["cluster", "ls", *([v["c"]] if "c" in v else [])]],
    ),
}


def message_view(values: Values, message_id: str) -> Call:
    """One message."""
    topic = ["--topic", values["t"]] if "t" in values else []
    return ["message", "view", message_id, *topic]


#: Why the others have no verb, or what to use.
MISSING: Final[dict[str, str]] = {
    "updateTopicList": f"{_FILES}'rocketbroker topic create' or 'topic update'.",
    "updateSubGroupList": f"{_FILES}'rocketbroker group create' or 'group update'.",
    "setConsumeMode": _POP,
    "allocateMQ": "'rocketbroker group show' shows which member has which queue.",
    "statsAll": "'rocketbroker top' shows rates and lags.",
    "sendMsgStatus": "'rocketbroker bench send' shows rates and times.",
    "addBroker": _CONTAINER,
    "removeBroker": _CONTAINER,
    "getColdDataFlowCtrInfo": _COLD,
    "updateColdDataFlowCtrGroupConfig": _COLD,
    "removeColdDataFlowCtrGroupConfig": _COLD,
    "setCommitLogReadAheadMode": _COLD,
    "rocksDBConfigToJson": _ROCKSDB,
    "exportMetadataInRocksDB": _ROCKSDB,
    "checkRocksdbCqWriteProgress": _ROCKSDB,
    "exportPopRecord": _POP,
    "queryMsgTraceById": _TRACE,
    "checkMsgSendRT": "'rocketbroker bench send' shows the times of sends.",
    "clusterRT": "'rocketbroker bench send' shows the times of sends.",
    "dumpCompactionLog": "rocketbroker does not compact topics.",
    "queryCq": "'rocketbroker message find --queue BROKER:N --offset O' shows what "
    "an entry leads to.",
    "startMonitoring": "etc/prometheus has alert rules.",
    "exportMetadata": "'rocketbroker topic ls -o json', and 'group ls -o json'.",
    "exportConfigs": "'rocketbroker broker settings BROKER -o json'.",
    "exportMetrics": "'rocketbroker broker status BROKER --all -o json'.",
    **dict.fromkeys(
        (
            "getSyncStateSet",
            "getBrokerEpoch",
            "getControllerMetaData",
            "getControllerConfig",
            "updateControllerConfig",
            "electMaster",
            "cleanBrokerMetadata",
        ),
        _CONTROLLER,
    ),
}
