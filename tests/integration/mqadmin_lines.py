"""The commands of L{test_mqadmin<tests.integration.test_mqadmin>}, in this order, and
what comes of them.

C{{v}} is the first number of the tool's version, so that each has topics and groups of
its own; other names in braces are of L{Seat<tests.integration.mqadmin.Seat>}.
"""

from __future__ import annotations

from typing import Final

#: Of the tools, the newest first.
VERSIONS: Final = ("5.3.3", "4.9.7")

#: How many commands 5.3.3 has, and how many of them work here.
COMMANDS: Final = 89
WORKING: Final = 78

#: Commands that Java's broker carries out and ours refuses, and the capability that
#: they wait for. Java without access control refuses commands of users and access
#: lists, too, and those of a controller without one, in other words.
NOT_HERE: Final = {
    "getBrokerEpoch": "controller",
}

#: Commands that are refused so, too, unless there is access control, and work then:
#: L{test_mqadmin_access<tests.integration.test_mqadmin_access>}.
WITH_ACCESS: Final = frozenset(
    (
        *("createUser", "updateUser", "deleteUser", "getUser", "listUser"),
        *("copyUser", "createAcl", "updateAcl", "deleteAcl", "getAcl", "listAcl"),
        "copyAcl",
    )
)

#: Commands that ask neither a broker nor a name server, and what they ask.
ELSEWHERE: Final = {
    "addBroker": "broker container",
    "cleanBrokerMetadata": "controller",
    "dumpCompactionLog": "files of compaction topics",
    "electMaster": "controller",
    "exportMetadataInRocksDB": "files of RocksDB",
    "getControllerConfig": "controller",
    "getControllerMetaData": "controller",
    "getSyncStateSet": "controller",
    "removeBroker": "broker container",
    "updateControllerConfig": "controller",
}

_WHO: Final = "5.3.3 lists the topic instead of its groups that are online (300)"
_OLD_TOOL: Final = "4.9's tool fails at Java's 5.3, which dropped a figure it needs"
_OURS: Final = "figures of ours besides, one of them for 4.9's tools"

#: What is shown otherwise, and why.
DIFFERENCES: Final = {
    "topicList -c DefaultCluster": _WHO,
    "statsAll": _WHO,
    "brokerStatus -b {broker}": _OURS,
    "brokerStatus -c DefaultCluster": _OURS,
}

#: The same of the tool of 4.9.7 alone.
DIFFERENCES_OLDER: Final = {
    "clusterList": _OLD_TOOL,
    "exportMetrics -c DefaultCluster -f {folder}/out": _OLD_TOOL,
}

#: What both have before there are messages.
MADE: Final = """
updateTopic -b {broker} -t T{v} -r 2 -w 2
updateTopic -c DefaultCluster -t U{v} -r 4 -w 4 -p 6 -a +message.type=FIFO
updateTopic -b {broker} -t O{v} -r 1 -w 1 -o true
updateTopic -b {broker} -t a.b
updateTopicList -b {broker} -f {folder}/topics.json
updateSubGroup -b {broker} -g G{v}
updateSubGroup -c DefaultCluster -g H{v} -m false -d true -q 2 -r 5 -i 0 -w 1 -a true
updateSubGroupList -b {broker} -f {folder}/groups.json
"""

#: What is asked when there are.
ASKED: Final = """
topicList
topicList -c DefaultCluster
topicRoute -t T{v}
topicRoute -t T{v} -l
topicRoute -t NoSuch
topicStatus -t T{v}
topicStatus -t T{v} -c DefaultCluster
topicClusterList -t T{v}
updateTopicPerm -b {broker} -t U{v} -p 4
updateTopicPerm -c DefaultCluster -t U{v} -p 6
updateTopicPerm -c DefaultCluster -t U{v} -p 6
allocateMQ -t T{v} -i 10.0.0.1,10.0.0.2
statsAll
statsAll -t T{v}
updateOrderConf -t O{v} -m put -v broker-a:1
updateOrderConf -t O{v} -m get
updateOrderConf -t O{v} -m delete
setConsumeMode -b {broker} -t T{v} -g G{v} -m PULL
setConsumeMode -b {broker} -t T{v} -g G{v} -m POP -q 3
getBrokerConfig -b {broker}
getBrokerConfig -c DefaultCluster
brokerStatus -b {broker}
brokerStatus -c DefaultCluster
brokerConsumeStats -b {broker}
brokerConsumeStats -b {broker} -o true
sendMsgStatus -b broker-a -c 3
resetMasterFlushOffset -b {broker} -o 0
cleanExpiredCQ -b {broker}
cleanExpiredCQ -c DefaultCluster
deleteExpiredCommitLog -b {broker}
cleanUnusedTopic -b {broker}
cleanUnusedTopic -c DefaultCluster
haStatus -b {broker}
getColdDataFlowCtrInfo -b {broker}
updateColdDataFlowCtrGroupConfig -b {broker} -g G{v} -v 1000
removeColdDataFlowCtrGroupConfig -b {broker} -g G{v}
setCommitLogReadAheadMode -b {broker} -m 0
rocksDBConfigToJson -b {broker} -t topics;subscriptionGroups
checkRocksdbCqWriteProgress -c DefaultCluster -t T{v}
exportPopRecord -b {broker}
producer -b {broker}
queryMsgById -t T{v} -i {id}
queryMsgByKey -t T{v} -k k1
queryMsgByUniqueKey -t T{v} -i {key}
queryMsgByUniqueKey -t R{v} -i {key}
queryMsgByUniqueKey -t T{v} -i {key} -g C{v} -d {client}
queryMsgByOffset -t T{v} -b broker-a -i 0 -o 1
queryMsgByOffset -t T{v} -b broker-a -i 0 -o 100
queryMsgTraceById -i {key}
printMsg -t T{v} -d true
printMsg -t T{v} -s tag1 -d true
printMsgByQueue -t T{v} -a broker-a -i 0 -p true -d true -f true
sendMessage -t T{v} -p hello -k key -c tag -b broker-a -i 0
consumeMessage -t T{v} -b broker-a -i 0 -o 0 -c 2
checkMsgSendRT -t O{v} -a 3 -s 10
clusterRT -a 2 -s 10 -i 60
queryCq -t T{v} -q 0 -i 0 -c 3 -b {broker}
queryCq -t R{v} -q 0 -i 1 -g C{v}
queryCq -t T{v} -q 0 -i 100 -b {broker}
consumerConnection -g C{v}
consumerConnection -g NoSuch
producerConnection -g P{v} -t R{v}
consumerProgress
consumerProgress -g G{v} -t T{v}
consumerProgress -g C{v}
consumerProgress -g C{v} -t R{v}
consumerStatus -g C{v}
getConsumerConfig -g G{v}
cloneGroupOffset -s G{v} -d X{v} -t T{v}
resetOffsetByTime -g G{v} -t T{v} -s now
resetOffsetByTime -g G{v} -t T{v} -s 0
resetOffsetByTime -g G{v} -t T{v} -s 0 -b {broker} -q 0 -o 1
skipAccumulatedMessage -g G{v} -t T{v}
consumerProgress -g G{v} -t T{v}
startMonitoring
updateKvConfig -s NS -k a -v b
deleteKvConfig -s NS -k a
wipeWritePerm -b broker-a
topicRoute -t T{v}
addWritePerm -b broker-a
getNamesrvConfig
updateNamesrvConfig -k enableTopicList -v true
clusterList
clusterList -m
exportMetadata -c DefaultCluster -f {folder}/out
exportMetadata -b {broker} -t -f {folder}/out
exportMetadata -b {broker} -g -f {folder}/out
exportConfigs -c DefaultCluster -f {folder}/out
exportMetrics -c DefaultCluster -f {folder}/out
getBrokerEpoch -b broker-a
updateBrokerConfig -b {broker} -k fileReservedTime -v 71
updateStaticTopic -t S{v} -qn 2 -c DefaultCluster
remappingStaticTopic -t S{v} -c DefaultCluster
createUser -b {broker} -u u -p p
updateUser -b {broker} -u u -p q
getUser -b {broker} -u u
listUser -b {broker}
copyUser -f {broker} -t {broker} -u u
deleteUser -b {broker} -u u
createAcl -b {broker} -s User:u -r Topic:T -a Pub -d Allow -i 1.2.3.4
updateAcl -b {broker} -s User:u -r Topic:T -a Pub -d Deny -i 1.2.3.4
getAcl -b {broker} -s User:u
listAcl -b {broker}
copyAcl -f {broker} -t {broker} -s User:u
deleteAcl -b {broker} -s User:u
getAclConfig -b {broker}
clusterAclConfigVersion -b {broker}
updateAclConfig -b {broker} -a key -s secret
deleteAclConfig -b {broker} -a key
updateGlobalWhiteAddr -b {broker} -g 10.0.0.1
deleteSubGroup -b {broker} -g H{v}
deleteSubGroup -c DefaultCluster -g G{v} -r true
deleteTopic -t T{v} -c DefaultCluster
deleteTopic -t S{v} -c DefaultCluster
topicList
"""

#: What 4.9.7 spells otherwise, or cannot do.
OLDER: Final[dict[str, str | None]] = {
    "updateTopic -c DefaultCluster -t U{v} -r 4 -w 4 -p 6 -a +message.type=FIFO": (
        "updateTopic -c DefaultCluster -t U{v} -r 4 -w 4 -p 6"
    ),
    "topicStatus -t T{v} -c DefaultCluster": None,
    "queryMsgById -t T{v} -i {id}": "queryMsgById -i {id}",
    "consumerProgress -g G{v} -t T{v}": "consumerProgress -g G{v}",
    "consumerProgress -g C{v} -t R{v}": None,
    "resetOffsetByTime -g G{v} -t T{v} -s 0 -b {broker} -q 0 -o 1": None,
}


def lines(text: str, version: str, commands: list[str]) -> list[str]:
    """The commands that a tool has.

    @param commands: their names.
    """
    found = text.strip().splitlines()
    if version.startswith("4"):
        older = [OLDER.get(line, line) for line in found]
        found = [line for line in older if line is not None]
    return [line for line in found if line.split()[0] in commands]
