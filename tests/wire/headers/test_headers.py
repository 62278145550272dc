"""All typed headers against the table of C{docs/facts/remoting.md} 20."""

from __future__ import annotations

import inspect
from types import ModuleType

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import SystemFailure
from rocketbroker.wire.headers import (
    admin,
    client,
    namesrv,
    pull,
    send,
)
from rocketbroker.wire.headers.admin import CreateTopicRequestHeader
from rocketbroker.wire.headers.header import (
    Header,
    RpcRequestHeader,
    TopicRequestHeader,
)
from rocketbroker.wire.headers.pull import PullMessageRequestHeader
from rocketbroker.wire.headers.send import (
    EndTransactionRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)

MODULES: tuple[ModuleType, ...] = (
    admin,
    client,
    namesrv,
    pull,
    send,
)

#: C{docs/facts/remoting.md} 20: the fields in order, each with its type (S string, I
#: and L integers, B boolean, T boundary type) and C{!} if it is required; C{+rpc} and
#: C{+topic} are the inherited ones.
TABLE = """
SendMessageRequestHeader producerGroup:S! topic:S! defaultTopic:S!
 defaultTopicQueueNums:I! queueId:I! sysFlag:I! bornTimestamp:L! flag:I! properties:S
 reconsumeTimes:I unitMode:B batch:B maxReconsumeTimes:I +topic
SendMessageRequestHeaderV2 a:S! b:S! c:S! d:I! e:I! f:I! g:L! h:I! i:S j:I k:B l:I m:B
 n:S +topic
RecallMessageRequestHeader producerGroup:S topic:S! recallHandle:S! +topic
ReplyMessageRequestHeader producerGroup:S! topic:S! defaultTopic:S!
 defaultTopicQueueNums:I! queueId:I! sysFlag:I! bornTimestamp:L! flag:I! properties:S
 reconsumeTimes:I unitMode:B bornHost:S! storeHost:S! storeTimestamp:L! +topic
PullMessageRequestHeader consumerGroup:S! topic:S! queueId:I! queueOffset:L!
 maxMsgNums:I! sysFlag:I! commitOffset:L! suspendTimeoutMillis:L! subscription:S
 subVersion:L! expressionType:S maxMsgBytes:I requestSource:I proxyFrowardClientId:S
 +topic
PullMessageResponseHeader suggestWhichBrokerId:L! nextBeginOffset:L! minOffset:L!
 maxOffset:L! offsetDelta:L topicSysFlag:I groupSysFlag:I forbiddenType:I
QueryMessageRequestHeader topic:S! key:S! maxNum:I! beginTimestamp:L! endTimestamp:L!
 +topic
QueryMessageResponseHeader indexLastUpdateTimestamp:L! indexLastUpdatePhyoffset:L!
QueryConsumerOffsetRequestHeader consumerGroup:S! topic:S! queueId:I!
 setZeroIfNotFound:B +topic
QueryConsumerOffsetResponseHeader offset:L!
UpdateConsumerOffsetRequestHeader consumerGroup:S! topic:S! queueId:I! commitOffset:L!
 +topic
CreateTopicRequestHeader topic:S! defaultTopic:S! readQueueNums:I! writeQueueNums:I!
 perm:I! topicFilterType:S! topicSysFlag:I order:B! attributes:S force:B +topic
GetBrokerConfigResponseHeader version:S!
SearchOffsetRequestHeader topic:S! queueId:I! timestamp:L! boundaryType:T +topic
GetMaxOffsetRequestHeader topic:S! queueId:I! committed:B +topic
GetMinOffsetRequestHeader topic:S! queueId:I! +topic
GetEarliestMsgStoretimeRequestHeader topic:S! queueId:I! +topic
ViewMessageRequestHeader topic:S offset:L!
UnregisterClientRequestHeader clientID:S! producerGroup:S consumerGroup:S +rpc
ConsumerSendMsgBackRequestHeader offset:L! group:S! delayLevel:I! originMsgId:S
 originTopic:S unitMode:B maxReconsumeTimes:I +rpc
EndTransactionRequestHeader topic:S producerGroup:S! tranStateTableOffset:L!
 commitLogOffset:L! commitOrRollback:I! fromTransactionCheck:B msgId:S! transactionId:S
 +rpc
GetConsumerListByGroupRequestHeader consumerGroup:S! +rpc
CheckTransactionStateRequestHeader topic:S tranStateTableOffset:L! commitLogOffset:L!
 msgId:S transactionId:S offsetMsgId:S +rpc
NotifyConsumerIdsChangedRequestHeader consumerGroup:S! +rpc
PopMessageRequestHeader consumerGroup:S! topic:S! queueId:I! maxMsgNums:I!
 invisibleTime:L! pollTime:L! bornTime:L! initMode:I! expType:S exp:S order:B
 attemptId:S +topic
PopMessageResponseHeader popTime:L! invisibleTime:L! reviveQid:I! restNum:L!
 startOffsetInfo:S msgOffsetInfo:S orderCountInfo:S
AckMessageRequestHeader consumerGroup:S! topic:S! queueId:I! extraInfo:S! offset:L!
 +topic
PeekMessageRequestHeader topic:S! queueId:I! maxMsgNums:I! consumerGroup:S! +topic
ChangeInvisibleTimeRequestHeader consumerGroup:S! topic:S! queueId:I! extraInfo:S!
 offset:L! invisibleTime:L! +topic
ChangeInvisibleTimeResponseHeader popTime:L! invisibleTime:L! reviveQid:I!
NotificationRequestHeader consumerGroup:S! topic:S! queueId:I! pollTime:L! bornTime:L!
 order:B attemptId:S +topic
NotificationResponseHeader hasMsg:B! pollingFull:B!
PollingInfoRequestHeader consumerGroup:S! topic:S! queueId:I! +topic
PollingInfoResponseHeader pollingNum:I!
GetTopicStatsInfoRequestHeader topic:S! +topic
GetConsumerConnectionListRequestHeader consumerGroup:S! +rpc
GetProducerConnectionListRequestHeader producerGroup:S! +rpc
DeleteSubscriptionGroupRequestHeader groupName:S! cleanOffset:B +rpc
GetConsumeStatsRequestHeader consumerGroup:S! topic:S topicList:S +topic
DeleteTopicRequestHeader topic:S! +topic
ResetOffsetRequestHeader group:S! topic:S! queueId:I offset:L timestamp:L! isForce:B!
 +topic
GetConsumerStatusRequestHeader topic:S! group:S! clientAddr:S +topic
QueryTopicConsumeByWhoRequestHeader topic:S! +topic
QueryConsumeTimeSpanRequestHeader topic:S! group:S! +topic
GetConsumerRunningInfoRequestHeader consumerGroup:S! clientId:S! jstackEnable:B +rpc
QueryCorrectionOffsetHeader filterGroups:S compareGroup:S! topic:S! +topic
ConsumeMessageDirectlyResultRequestHeader consumerGroup:S! clientId:S msgId:S
 brokerName:S topic:S topicSysFlag:I groupSysFlag:I +topic
CloneGroupOffsetRequestHeader srcGroup:S! destGroup:S! topic:S offline:B +rpc
ViewBrokerStatsDataRequestHeader statsName:S! statsKey:S!
GetConsumeStatsInBrokerHeader isOrder:B!
QueryConsumeQueueRequestHeader topic:S queueId:I index:L count:I consumerGroup:S +topic
ResumeCheckHalfMessageRequestHeader topic:S msgId:S
QueryTopicsByConsumerRequestHeader group:S! +rpc
QuerySubscriptionByConsumerRequestHeader group:S! topic:S +topic
UpdateGroupForbiddenRequestHeader group:S! topic:S! readable:B +topic
CheckRocksdbCqWriteProgressRequestHeader topic:S! checkStoreTime:L
ExportRocksDBConfigToJsonRequestHeader configType:S!
GetTopicConfigRequestHeader topic:S! +topic
GetSubscriptionGroupConfigRequestHeader group:S! +rpc
PutKVConfigRequestHeader namespace:S! key:S! value:S!
GetKVConfigRequestHeader namespace:S! key:S!
GetKVConfigResponseHeader value:S
DeleteKVConfigRequestHeader namespace:S! key:S!
RegisterBrokerRequestHeader brokerName:S! brokerAddr:S! clusterName:S! haServerAddr:S!
 brokerId:L! heartbeatTimeoutMillis:L enableActingMaster:B compressed:B bodyCrc32:I
RegisterBrokerResponseHeader haServerAddr:S masterAddr:S
UnRegisterBrokerRequestHeader brokerName:S! brokerAddr:S! clusterName:S! brokerId:L!
GetRouteInfoRequestHeader topic:S! acceptStandardJsonOnly:B +topic
WipeWritePermOfBrokerRequestHeader brokerName:S!
WipeWritePermOfBrokerResponseHeader wipeTopicCount:I!
AddWritePermOfBrokerRequestHeader brokerName:S!
AddWritePermOfBrokerResponseHeader addTopicCount:I!
DeleteTopicFromNamesrvRequestHeader topic:S! clusterName:S +topic
RegisterTopicRequestHeader topic:S! +topic
GetKVListByNamespaceRequestHeader namespace:S!
GetTopicsByClusterRequestHeader cluster:S!
QueryDataVersionRequestHeader brokerName:S! brokerAddr:S! clusterName:S! brokerId:L!
QueryDataVersionResponseHeader changed:B!
GetBrokerMemberGroupRequestHeader clusterName:S! brokerName:S!
BrokerHeartbeatRequestHeader clusterName:S! brokerAddr:S! brokerName:S! brokerId:L
 epoch:I maxOffset:L confirmOffset:L heartbeatTimeoutMills:L electionPriority:I
NotifyMinBrokerIdChangeRequestHeader minBrokerId:L brokerName:S minBrokerAddr:S
 offlineBrokerAddr:S haBrokerAddr:S
ExchangeHAInfoRequestHeader masterHaAddress:S masterFlushOffset:L masterAddress:S
ResetMasterFlushOffsetHeader masterFlushOffset:L!
ExchangeHAInfoResponseHeader masterHaAddress:S masterFlushOffset:L masterAddress:S
"""

INHERITED = {"+rpc": "ns:S nsd:B bname:S oway:B", "+topic": "lo:B +rpc"}
#: A value of each type, and the largest.
SAMPLES = {
    "S": ("x", "\u4e2d \x01"),
    "I": ("5", str((1 << 31) - 1)),
    "L": ("-6", str(-(1 << 63))),
    "B": ("true", "false"),
    "T": ("UPPER", "LOWER"),
}


def rows() -> dict[str, list[tuple[str, str, bool]]]:
    """Of each class the names, types, and whether they are required."""
    table: dict[str, list[tuple[str, str, bool]]] = {}
    for row in TABLE.replace("\n ", " ").strip().split("\n"):
        for mark in ("+topic", "+rpc"):
            row = row.replace(mark, INHERITED[mark])
        cls, *fields = row.split()
        table[cls] = []
        for field in fields:
            key, kind = field.split(":")
            table[cls].append((key, kind[0], kind.endswith("!")))
    return table


def classes() -> dict[str, type[Header]]:
    """All header classes that have Java's names."""
    return {
        name: cls
        for module in MODULES
        for name, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, Header)
        and cls not in (Header, RpcRequestHeader, TopicRequestHeader)
    }


class TableTests(SynchronousTestCase):
    """Every header against the table."""

    def test_complete(self) -> None:
        """All headers of the table are there, and no other."""
        self.assertEqual(sorted(rows()), sorted(classes()))

    def test_fields(self) -> None:
        """Each header reads and writes its fields, in the order of declaration."""
        for name, fields in rows().items():
            cls = classes()[name]
            for sample in (0, 1):
                ext = {key: SAMPLES[kind][sample] for key, kind, _ in fields}
                if cls is CreateTopicRequestHeader:
                    ext["topicFilterType"] = "SINGLE_TAG"
                if cls is EndTransactionRequestHeader:
                    ext["commitOrRollback"] = "8"
                written = cls.from_ext({**ext, "unknown": "key"}).to_ext()
                self.assertEqual(list(written.items()), list(ext.items()), name)

    def test_required(self) -> None:
        """Each header knows what Java requires, and does without it."""
        zero = {"S": "", "I": "0", "L": "0", "B": "false"}
        for name, fields in rows().items():
            cls = classes()[name]
            required = [key for key, _, must in fields if must]
            self.assertEqual(cls.lacking(None), required, name)
            written = cls.from_ext(None).to_ext()
            for key, kind, must in fields:
                if must:
                    self.assertEqual(written.pop(key), zero[kind], f"{name}.{key}")
            if cls is not CreateTopicRequestHeader:
                self.assertEqual(cls.from_ext(None), cls.from_ext({}))

    def test_optional(self) -> None:
        """What is left when only required fields are there: Java's primitives."""
        left: dict[str, dict[str, str]] = {}
        for name, fields in rows().items():
            written = classes()[name].from_ext(None).to_ext()
            for key, _, must in fields:
                if not must and key in written:
                    left.setdefault(name, {})[key] = written[key]
        self.assertEqual(
            left,
            {
                "CheckRocksdbCqWriteProgressRequestHeader": {"checkStoreTime": "0"},
                "CloneGroupOffsetRequestHeader": {"offline": "false"},
                "DeleteSubscriptionGroupRequestHeader": {"cleanOffset": "false"},
                "GetMaxOffsetRequestHeader": {"committed": "true"},
                "QueryConsumeQueueRequestHeader": {
                    "queueId": "0",
                    "index": "0",
                    "count": "0",
                },
                "RegisterBrokerRequestHeader": {
                    "compressed": "false",
                    "bodyCrc32": "0",
                },
                "ResetOffsetRequestHeader": {"queueId": "-1"},
                "SearchOffsetRequestHeader": {"boundaryType": "LOWER"},
            },
        )

    def test_numbersThatDoNotParse(self) -> None:
        """An ordinary header has zero or null instead, a fast one is an error."""
        for name, fields in rows().items():
            cls = classes()[name]
            for key, kind, must in fields:
                if kind not in "IL" or key == "commitOrRollback":
                    continue
                ext = {key: "12x", "topicFilterType": "SINGLE_TAG"}
                if cls.fast:
                    with self.assertRaises(SystemFailure) as caught:
                        cls.from_ext(ext)
                    self.assertIn(key, caught.exception.remark)
                else:
                    good = {"topicFilterType": "SINGLE_TAG"}
                    self.assertEqual(cls.from_ext(ext), cls.from_ext(good), name)
                self.assertEqual(key in cls.lacking(ext), must)

    def test_fast(self) -> None:
        """Three headers are read by hand in Java."""
        self.assertEqual(
            sorted(name for name, cls in classes().items() if cls.fast),
            [
                "PullMessageRequestHeader",
                "PullMessageResponseHeader",
                "SendMessageRequestHeaderV2",
            ],
        )


class CheckTests(SynchronousTestCase):
    """The two headers that check a value."""

    def test_filterType(self) -> None:
        """A topic's filter type must be one of Java's if there are any fields."""
        for ext in ({"topicFilterType": "X"}, {"topic": "T"}, {}):
            with self.assertRaises(SystemFailure):
                CreateTopicRequestHeader.from_ext(ext)
        CreateTopicRequestHeader.from_ext(None)

    def test_outcome(self) -> None:
        """A transaction's outcome must be one of three numbers; missing it is 0."""
        for outcome in ("1", "-8", "9"):
            with self.assertRaises(SystemFailure):
                EndTransactionRequestHeader.from_ext({"commitOrRollback": outcome})
        for outcome in ("0", "8", "12"):
            EndTransactionRequestHeader.from_ext({"commitOrRollback": outcome})


class SendTests(SynchronousTestCase):
    """The two forms of the header of a send."""

    def test_forms(self) -> None:
        """The short form becomes the long one, with the name of the broker."""
        fields = {
            key: SAMPLES[kind][0]
            for key, kind, _ in rows()["SendMessageRequestHeaderV2"]
        }
        del fields["bname"]
        short = SendMessageRequestHeaderV2.from_ext(fields)
        long = short.to_v1()
        self.assertEqual(long.bname, "x")
        self.assertEqual(long.to_ext()["producerGroup"], "x")
        self.assertIsInstance(long, SendMessageRequestHeader)

    def test_wireOrder(self) -> None:
        """The inherited fields of a pull come last: lo, ns, nsd, bname, oway."""
        header = PullMessageRequestHeader.from_ext(
            {"lo": "false", "ns": "n", "nsd": "true", "bname": "b", "oway": "false"}
        )
        self.assertEqual(
            list(header.to_ext())[-5:], ["lo", "ns", "nsd", "bname", "oway"]
        )
