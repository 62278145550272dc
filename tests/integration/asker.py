"""Requests of many kinds to a broker, on one connection."""

from __future__ import annotations

from collections.abc import Iterator

from rocketbroker.blocking.connections import Connections
from rocketbroker.blocking.settings import Settings
from rocketbroker.records.batches import unwrap
from rocketbroker.records.record import decode_all
from rocketbroker.records.sysflags import TRANSACTION_COMMIT, TRANSACTION_PREPARED
from rocketbroker.wire.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps
from scripts.lab.servers import Cluster

BATCHES = RequestCode.SEND_BATCH_MESSAGE


class Asker:
    """Requests to the broker that is up, on one connection.

    @ivar cluster: the broker's.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        connections = Connections(Settings(cluster.names))
        self.connection = connections.to(cluster.address)
        self.close = connections.close

    def __call__(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        """The answer to a request."""
        return self.connection.invoke(Command(code, ext, body), 30)

    def done(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        """The answer to a request that must succeed."""
        answer = self(code, ext, body)
        assert answer.code == ResponseCode.SUCCESS, (code, answer.code, answer.remark)
        return answer

    def subscribe(self, topic: str, group: str, expression: str) -> None:
        """Be a member of a group that wants the messages of an SQL expression."""
        wants = SubscriptionData(
            topic=topic, sub_string=expression, sub_version=7, expression_type="SQL92"
        )
        member = ConsumerData(group_name=group, subscription_data_set=[wants])
        data = HeartbeatData(client_id="one", consumer_data_set=[member])
        self.done(RequestCode.HEART_BEAT, {}, dumps(data))

    def create(self, topic: str, attributes: str) -> None:
        """Make a topic with one queue."""
        ext = {
            "topic": topic,
            "defaultTopic": "TBW102",
            "readQueueNums": "1",
            "writeQueueNums": "1",
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
            "attributes": attributes,
        }
        self.done(RequestCode.UPDATE_AND_CREATE_TOPIC, ext)

    def send(
        self,
        topic: str,
        text: str,
        body: bytes,
        code: int = RequestCode.SEND_MESSAGE_V2,
        flag: int = 0,
    ) -> Command:
        """Send a message, or by its code a batch; the answer."""
        ext = {
            **dict.fromkeys("hj", "0"),
            "f": str(flag),
            "a": "senders",
            "b": topic,
            "c": "TBW102",
            "d": "4",
            "e": "0",
            "g": "1700000000000",
            "i": text,
            "k": "false",
            "m": "true" if code == BATCHES else "false",
        }
        return self.done(code, ext, body)

    def commit(self, topic: str, key: str, body: bytes) -> None:
        """Send a message as a transaction that succeeds."""
        text = f"UNIQ_KEY\x01{key}\x02TRAN_MSG\x01true\x02PGROUP\x01senders\x02"
        half = self.send(topic, text, body, flag=TRANSACTION_PREPARED).ext or {}
        ext = {
            "producerGroup": "senders",
            "tranStateTableOffset": half["queueOffset"],
            "commitLogOffset": str(int(half["msgId"][16:], 16)),
            "commitOrRollback": str(TRANSACTION_COMMIT),
            "fromTransactionCheck": "false",
            "msgId": key,
            "transactionId": key,
        }
        self.done(RequestCode.END_TRANSACTION, ext)

    def found(self, topic: str, key: str) -> list[bytes]:
        """The bodies of the messages with a key."""
        ext = {
            "topic": topic,
            "key": key,
            "maxNum": "10",
            "beginTimestamp": "0",
            "endTimestamp": str(1 << 62),
        }
        answer = self(RequestCode.QUERY_MESSAGE, ext)
        return [message.body for message in decode_all(answer.body)]

    def pulled(self, topic: str, group: str, flags: int) -> Iterator[tuple[int, bytes]]:
        """All messages of a queue, as a member of a group is given them."""
        at = 0
        while True:
            ext = {
                "consumerGroup": group,
                "topic": topic,
                "queueId": "0",
                "queueOffset": str(at),
                "maxMsgNums": "32",
                "sysFlag": str(flags),
                "commitOffset": "0",
                "suspendTimeoutMillis": "0",
                "subscription": "*",
                "subVersion": "7",
                "expressionType": "TAG",
            }
            answer = self(RequestCode.PULL_MESSAGE, ext)
            if answer.code == ResponseCode.PULL_NOT_FOUND:
                return
            if answer.code != ResponseCode.PULL_RETRY_IMMEDIATELY:
                assert answer.code == ResponseCode.SUCCESS, answer
                for message in decode_all(answer.body):
                    for part in unwrap(message):
                        yield part.queue_offset, part.body
            assert answer.ext is not None
            at = int(answer.ext["nextBeginOffset"])
