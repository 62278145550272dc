"""A name server and brokers in memory, for the tests of the blocking client.

They know as much of the protocol as the client uses, and can be told to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import ConnectionLost
from rocketbroker.records import batches, hosts, ids, record
from rocketbroker.testing.scripted import ScriptedMachine, answer
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.routes import (
    BrokerData,
    ClusterInfo,
    QueueData,
    TopicRouteData,
)
from rocketbroker.wire.bodies.statistics import TopicOffset
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command

HOST = hosts.encode("10.0.0.9", 10911)
NAME_SERVERS = "ns1:9876;ns2:9876"

#: What a broker does instead of answering as usual; None: as usual.
Fault = Callable[[Command], "Command | Sequence[Command] | None"]


def hang_up(command: Command) -> Command:
    """A fault: close the connection."""
    raise ConnectionLost("hung up")


def silent(command: Command) -> Sequence[Command]:
    """A fault: no answer."""
    return []


class MemoryBroker:
    """One broker.

    @ivar queues: the records of each queue, by topic and number.
    @ivar offsets: of groups.
    @ivar faults: what goes wrong with the next requests, one each.
    @ivar most: how many messages a pull brings at most.
    @ivar damaged: topic, queue and offset of messages that it passes over.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.queues: dict[tuple[str, int], list[bytes]] = {}
        self.first: dict[tuple[str, int], int] = {}
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.faults: list[Fault] = []
        self.most = 32
        self.damaged: set[tuple[str, int, int]] = set()
        self.status = 0
        self.sends: list[Command] = []
        self.created: list[dict[str, str]] = []

    def __call__(self, command: Command) -> Command | Sequence[Command] | None:
        """Answer, or fail."""
        if self.faults:
            found = self.faults.pop(0)(command)
            if found is not None:
                return found
        ext = command.ext or {}
        if command.code in (310, 320):
            return self.send(command, ext)
        if command.code == RequestCode.UPDATE_AND_CREATE_TOPIC:
            self.created.append(ext)
            return answer()
        if command.code == RequestCode.VIEW_MESSAGE_BY_ID:
            for queue in self.queues.values():
                for data in queue:
                    if record.decode(data).position == int(ext["offset"]):
                        return answer(body=data)
            return answer(1, remark="nothing there")
        if command.code == RequestCode.GET_TOPIC_STATS_INFO:
            return self.statistics(ext["topic"])
        key = (ext["topic"], int(ext["queueId"]))
        if command.code == RequestCode.PULL_MESSAGE:
            return self.pull(key, ext)
        return self.offset(command.code, key, ext)

    def put(self, topic: str, queue_id: int, body: bytes, **fields: object) -> int:
        """Store a message; its queue offset."""
        queue = self.queues.setdefault((topic, queue_id), [])
        offset = len(queue) + self.first.get((topic, queue_id), 0)
        given: dict[str, object] = {
            "properties": b"",
            "born_ms": 5,
            "born_host": HOST,
            "store_ms": 1000 + offset,
            "store_host": HOST,
        }
        data = record.encode(
            topic.encode(),
            body,
            queue_id=queue_id,
            queue_offset=offset,
            position=1000 * offset + queue_id,
            **(given | fields),  # type: ignore[arg-type]
        )
        queue.append(data)
        return offset

    def send(self, command: Command, ext: dict[str, str]) -> Command:
        """Store a message or a batch."""
        self.sends.append(command)
        topic, queue_id = ext["b"], int(ext["e"])
        parts: Sequence[tuple[int, bytes, bytes]] = [
            (int(ext["h"]), command.body, ext["i"].encode())
        ]
        if ext["m"] == "true":
            parts = batches.decode(command.body)
        stored = [
            self.put(
                topic,
                queue_id,
                body,
                properties=own,
                flag=flag,
                sys_flag=int(ext["f"]),
            )
            for flag, body, own in parts
        ]
        found = ",".join(ids.offset_id(HOST, 1000 * n + queue_id) for n in stored)
        return answer(
            self.status,
            {"msgId": found, "queueId": ext["e"], "queueOffset": str(stored[0])},
        )

    def pull(self, key: tuple[str, int], ext: dict[str, str]) -> Command:
        """What a pull brings."""
        queue = self.queues.get(key, [])
        first = self.first.get(key, 0)
        end = first + len(queue)
        offset = int(ext["queueOffset"])
        found: list[bytes] = []
        following = offset
        if offset < first or offset > end:
            code = ResponseCode.PULL_OFFSET_MOVED
            following = min(max(offset, first), end)
        elif offset == end:
            code = ResponseCode.PULL_NOT_FOUND
        else:
            most = min(int(ext["maxMsgNums"]), self.most)
            wanted = ext["subscription"]
            for data in queue[offset - first :]:
                if len(found) == most:
                    break
                following += 1
                if (*key, following - 1) in self.damaged:
                    continue
                if wanted in ("*", record.decode(data).tags or ""):
                    found.append(data)
            code = ResponseCode.SUCCESS
            if not found:
                code = ResponseCode.PULL_RETRY_IMMEDIATELY
        fields = {
            "suggestWhichBrokerId": "0",
            "nextBeginOffset": str(following),
            "minOffset": str(first),
            "maxOffset": str(end),
        }
        return answer(code, fields, b"".join(found))

    def statistics(self, topic: str) -> Command:
        """The bounds of the queues of a topic that have had messages."""
        table = {}
        for (name, queue_id), queue in self.queues.items():
            if name == topic:
                first = self.first.get((name, queue_id), 0)
                offset = TopicOffset(min_offset=first, max_offset=first + len(queue))
                table[MessageQueue(topic, "b", queue_id)] = offset.to_json()
        return answer(body=fastjson.dumps({"offsetTable": table, "topicPutTps": 0.0}))

    def offset(self, code: int, key: tuple[str, int], ext: dict[str, str]) -> Command:
        """The offsets of queues and groups."""
        first = self.first.get(key, 0)
        queue = self.queues.get(key, [])
        group = (ext.get("consumerGroup", ""), *key)
        if code == RequestCode.UPDATE_CONSUMER_OFFSET:
            self.offsets[group] = int(ext["commitOffset"])
            return answer()
        if code == RequestCode.QUERY_CONSUMER_OFFSET:
            if group not in self.offsets:
                return answer(ResponseCode.QUERY_NOT_FOUND, remark="Not found")
            return answer(ext={"offset": str(self.offsets[group])})
        if code == RequestCode.GET_EARLIEST_MSG_STORETIME:
            return answer(ext={"timestamp": str(1000 + first if queue else -1)})
        values = {
            RequestCode.GET_MIN_OFFSET: first,
            RequestCode.GET_MAX_OFFSET: first + len(queue),
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: first
            + (1 if ext.get("boundaryType") == "UPPER" else 0),
        }
        return answer(ext={"offset": str(values[RequestCode(code)])})


class MemoryCluster:
    """A name server under two addresses, and two brokers.

    @ivar topics: how many queues each topic has, on each of its brokers.
    @ivar perm: the permission of all topics.
    @ivar ids: the id of each broker.
    """

    def __init__(self, seconds: float = 1.0, attempts: int = 3) -> None:
        self.brokers = {name: MemoryBroker(name) for name in ("b1", "b2")}
        self.topics: dict[str, dict[str, int]] = {"T": {"b1": 2, "b2": 2}}
        self.order: str | None = None
        self.perm = 6
        self.ids = dict.fromkeys(self.brokers, 0)
        self.addresses = {name: f"{name}:10911" for name in self.brokers}
        self.machine = ScriptedMachine(
            {
                "ns1:9876": self.name_server,
                "ns2:9876": self.name_server,
                "b1:10911": self.brokers["b1"],
                "b2:10911": self.brokers["b2"],
            }
        )
        self.client = Client(
            Settings(
                NAME_SERVERS, seconds=seconds, attempts=attempts, machine=self.machine
            )
        )

    def name_server(self, command: Command) -> Command | None:
        """Answer as a name server."""
        if command.code == RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER:
            return answer(body=fastjson.dumps({"topicList": [*self.topics]}))
        if command.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            info = ClusterInfo(
                broker_addr_table={name: self.data(name) for name in self.brokers},
                cluster_addr_table={"c1": ["b1"], "c2": ["b2"]},
            )
            return answer(body=fastjson.dumps(info))
        assert command.code == RequestCode.GET_ROUTEINFO_BY_TOPIC
        topic = (command.ext or {})["topic"]
        if topic not in self.topics:
            return answer(ResponseCode.TOPIC_NOT_EXIST, remark="No topic route info")
        route = TopicRouteData(
            queue_datas=[
                QueueData(
                    broker_name=name,
                    read_queue_nums=count,
                    write_queue_nums=count,
                    perm=self.perm,
                )
                for name, count in self.topics[topic].items()
            ],
            broker_datas=[self.data(name) for name in self.topics[topic]],
            order_topic_conf=self.order,
        )
        return answer(body=fastjson.dumps(route))

    def data(self, name: str) -> BrokerData:
        """The addresses of one broker."""
        return BrokerData(
            cluster="c" + name[1:],
            broker_name=name,
            broker_addrs={self.ids[name]: self.addresses[name]},
        )
