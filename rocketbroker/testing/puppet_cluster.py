# -*- test-case-name: tests.client -*-
"""A name server and brokers on the memory runtime, for tests of the client.

They know as much of the protocol as clients use: groups and their notices, queues, held
pulls, offsets, retry topics, locks. They keep no rules that clients do not see, and can
be told to fail. The contract that they keep is that of the real broker, which
C{tests/integration} runs the same clients against.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

import attrs

from rocketbroker.auth.policy_documents import acl_json, user_json
from rocketbroker.auth.users import Documents, name_of
from rocketbroker.errors import ConnectionLost
from rocketbroker.records import batches, hosts, names, properties, record
from rocketbroker.records.recall_handle import RecallHandle
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.routing.allocation import allocate
from rocketbroker.testing.runtime import MemoryRuntime, PuppetLink
from rocketbroker.testing.scripted import answer
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.heartbeats import ConsumerData, HeartbeatData
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.queues import LockBatchBody, MessageQueue
from rocketbroker.wire.bodies.routes import BrokerData, QueueData, TopicRouteData
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.fields import Fields

HOST: Final = hosts.encode("10.0.0.9", 10911)

#: What the brokers say of themselves in each message.
CLUSTER: Final = "c"

#: How long a message rests that was sent back for the first time.
RETRY_SECONDS: Final = 10.0

#: How long a lock is good.
LOCK_SECONDS: Final = 60.0

Answer: TypeAlias = "Command | Sequence[Command] | None"

#: What a broker does instead of answering as usual; None: as usual.
Fault: TypeAlias = Callable[[Command], Answer]

#: A queue of a topic.
Key: TypeAlias = tuple[str, int]


def hang_up(command: Command) -> Answer:
    """A fault: close the connection."""
    raise ConnectionLost("it hung up")


def silent(command: Command) -> Answer:
    """A fault: no answer."""
    return []


def refuse(code: int) -> Fault:
    """A fault: this code."""
    return lambda command: answer(code, remark="refused")


@final
class PuppetBroker:
    """One broker.

    @ivar queues: the records of each queue.
    @ivar first: the first offset of queues that do not begin at 0.
    @ivar deltas: of queues of static topics: what clients add to the offsets of their
        records.
    @ivar offsets: by group, topic and queue.
    @ivar groups: what each member of a group wants, by group and connection.
    @ivar clients: the client id of each connection.
    @ivar heartbeats: all that have come.
    @ivar heartbeat_answer: the fields of their answers.
    @ivar locks: who has locked a queue for a group, and until when.
    @ivar faults: what goes wrong with the next requests of a code, one each.
    @ivar recalled: the handles by which messages were taken back.
    @ivar acks: topic, queue and offset of all messages popped and acknowledged.
    @ivar commits: all commits, in order: group, topic, queue, offset.
    @ivar ends: the fields of all requests that end transactions.
    """

    def __init__(self, cluster: PuppetCluster, name: str) -> None:
        self._cluster = cluster
        self._runtime = cluster.runtime
        self._held: list[tuple[PuppetLink, Command]] = []
        self._pops: list[tuple[PuppetLink, Command]] = []
        self._visible_at: dict[tuple[str, int, int], float] = {}
        self.name = name
        self.queues: dict[Key, list[bytes]] = {}
        self.first: dict[Key, int] = {}
        self.deltas: dict[Key, int] = {}
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.groups: dict[str, dict[PuppetLink, ConsumerData]] = {}
        self.clients: dict[PuppetLink, str] = {}
        self.heartbeats: list[HeartbeatData] = []
        self.heartbeat_answer: dict[str, str] = {}
        self.locks: dict[tuple[str, Key], tuple[str, float]] = {}
        self.faults: dict[int, list[Fault]] = {}
        self.recalled: list[str] = []
        self.acks: set[tuple[str, int, int]] = set()
        self.commits: list[tuple[str, str, int, int]] = []
        self.ends: list[dict[str, str]] = []

    def __call__(self, link: PuppetLink, command: Command) -> Answer:
        """Answer, or fail."""
        faults = self.faults.get(command.code)
        if faults:
            found = faults.pop(0)(command)
            if found is not None:
                return found
        code = command.code
        ext = command.ext or {}
        if not self._leads(ext):
            return answer(ResponseCode.NOT_LEADER_FOR_QUEUE, remark="it has moved")
        if code in (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE):
            return self._send(command, ext)
        if code == RequestCode.SEND_REPLY_MESSAGE_V2:
            return self._reply(command, ext)
        if code in (RequestCode.QUERY_MESSAGE, RequestCode.VIEW_MESSAGE_BY_ID):
            return self._find(code, ext)
        if code == RequestCode.RECALL_MESSAGE:
            self.recalled.append(ext["recallHandle"])
            handle = RecallHandle.parse(ext["recallHandle"])
            return answer(ext={"msgId": handle.unique_key})
        if code == RequestCode.PULL_MESSAGE:
            return self._pull(link, command, ext)
        if code == RequestCode.POP_MESSAGE:
            return self._pop(link, command)
        if code in (RequestCode.ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME):
            return self._end_pop(code, ext)
        if code == RequestCode.HEART_BEAT:
            return self._heartbeat(link, command)
        if code == RequestCode.UNREGISTER_CLIENT:
            return self._unregister(link, ext)
        if code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            return self._members(ext["consumerGroup"])
        if code == RequestCode.QUERY_ASSIGNMENT:
            return self._assign(command)
        if code == RequestCode.CONSUMER_SEND_MSG_BACK:
            return self._send_back(ext)
        if code == RequestCode.END_TRANSACTION:
            self.ends.append(ext)
            return answer()
        if code == RequestCode.GET_TOPIC_CONFIG:
            kind = self._cluster.kinds.get(ext["topic"])
            attributes = {} if kind is None else {"message.type": kind}
            config = TopicConfig(topic_name=ext["topic"], attributes=attributes)
            return answer(body=fastjson.dumps(config))
        if code == RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG:
            group = self._cluster.group_configs.get(ext["group"])
            return answer(26) if group is None else answer(body=fastjson.dumps(group))
        if code in (RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ):
            return self._lock(command)
        if code in (RequestCode.AUTH_GET_USER, RequestCode.AUTH_GET_ACL):
            return self._access(ext)
        return self._offset(code, ext)

    def _leads(self, ext: dict[str, str]) -> bool:
        """Whether a queue is here, or its topic is not static."""
        topic = ext.get("topic") or ext.get("b", "")
        number = ext.get("queueId") or ext.get("e")
        leaders = self._cluster.leaders.get(topic)
        if leaders is None or number is None:
            return True
        return leaders[int(number)] == self.name

    # Messages.

    def put(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        text: dict[str, str] | None = None,
        flag: int = 0,
        sys_flag: int = 0,
        reconsume_times: int = 0,
    ) -> int:
        """Store a message and answer pulls that wait for it; its queue offset."""
        queue = self.queues.setdefault((topic, queue_id), [])
        offset = len(queue) + self.first.get((topic, queue_id), 0)
        data = record.encode(
            topic.encode(),
            body,
            properties.encode(text or {}),
            queue_id=queue_id,
            queue_offset=offset - self.deltas.get((topic, queue_id), 0),
            position=self._cluster.position(),
            born_ms=5,
            born_host=HOST,
            store_ms=1000 + offset,
            store_host=HOST,
            flag=flag,
            sys_flag=sys_flag,
            reconsume_times=reconsume_times,
        )
        queue.append(data)
        held, self._held = self._held, []
        for link, command in held:
            self._look_again(link, command)
        pops, self._pops = self._pops, []
        for link, command in pops:
            self._pop_again(link, command)
        return offset

    def stored(self, topic: str) -> list[record.StoredMessage]:
        """All messages of a topic, by queue."""
        return [
            record.decode(data)
            for (name, _), queue in sorted(self.queues.items())
            if name == topic
            for data in queue
        ]

    def _find(self, code: int, ext: dict[str, str]) -> Command:
        if code == RequestCode.VIEW_MESSAGE_BY_ID:
            problem, position = 1, int(ext["offset"])

            def is_wanted(one: record.StoredMessage) -> bool:
                return one.position == position

        else:
            problem = ResponseCode.QUERY_NOT_FOUND
            span = range(int(ext["beginTimestamp"]), int(ext["endTimestamp"]) + 1)
            is_unique = ext.get("_UNIQUE_KEY_QUERY") == "true"

            def is_wanted(one: record.StoredMessage) -> bool:
                keys = [one.unique_key] if is_unique else one.keys
                return ext["key"] in keys and one.store_ms in span

        found = [
            data
            for (topic, _), queue in sorted(self.queues.items())
            if topic == ext["topic"]
            for data in queue
            if is_wanted(record.decode(data))
        ]
        most = int(ext.get("maxNum", "1"))
        return answer(body=b"".join(found[-most:])) if found else answer(problem)

    def _send(self, command: Command, ext: dict[str, str]) -> Command:
        topic, queue_id = ext["b"], int(ext["e"])
        self._cluster.topics.setdefault(topic, {self.name: 4})
        parts: Sequence[tuple[int, bytes, bytes]] = [
            (int(ext["h"]), command.body, ext["i"].encode())
        ]
        if ext["m"] == "true":
            parts = batches.decode(command.body)
        times = int(ext.get("j", "0"))
        stored = [
            self.put(
                topic,
                queue_id,
                body,
                {**properties.decode(own), "CLUSTER": CLUSTER},
                flag,
                int(ext["f"]),
                times,
            )
            for flag, body, own in parts
        ]
        queue = self.queues[topic, queue_id]
        found = [record.decode(data) for data in queue[-len(stored) :]]
        fields = {
            "msgId": ",".join(one.offset_id for one in found),
            "queueId": str(queue_id),
            "queueOffset": str(stored[0]),
        }
        if properties.TIMER_DELAY_MS in found[0].properties:
            handle = RecallHandle(topic, self.name, 1, found[0].message_id)
            fields["recallHandle"] = handle.encode()
        return answer(0, fields)

    def _reply(self, command: Command, ext: dict[str, str]) -> Command:
        """Pass a reply on to the client that it names, if it is here."""
        own = properties.parse(ext["i"])
        wanted = own[properties.REPLY_TO_CLIENT]
        found = [link for link, name in self.clients.items() if name == wanted]
        if not found:
            return answer(1, remark=f"channel of <{wanted}> not found.")
        fields = {
            "producerGroup": ext["a"],
            "topic": ext["b"],
            "queueId": ext["e"],
            "sysFlag": ext["f"],
            "bornTimestamp": ext["g"],
            "flag": ext["h"],
            "properties": ext["i"],
            "bornHost": "/10.0.0.1:5",
            "storeHost": f"/{self.name}:10911",
            "storeTimestamp": "9",
        }
        code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
        found[0].send(Command(code, fields, command.body, opaque=1))
        return answer(ext={"msgId": "0", "queueId": ext["e"], "queueOffset": "0"})

    def _pull(self, link: PuppetLink, command: Command, ext: dict[str, str]) -> Answer:
        if int(ext["sysFlag"]) & 1:
            self._commit(ext, int(ext["commitOffset"]))
        found = self._look(ext)
        if found is not None:
            return found
        self._held.append((link, command))
        seconds = int(ext["suspendTimeoutMillis"]) / 1000
        self._runtime.call_later(seconds, self._give_up, link, command)
        return None

    def _look(self, ext: dict[str, str], is_last: bool = False) -> Command | None:
        key = (ext["topic"], int(ext["queueId"]))
        queue = self.queues.get(key, [])
        first = self.first.get(key, 0)
        end = first + len(queue)
        offset = int(ext["queueOffset"])
        following = offset
        data: list[bytes] = []
        if not first <= offset <= end:
            code = ResponseCode.PULL_OFFSET_MOVED
            following = min(max(offset, first), end)
        elif offset == end:
            if not is_last:
                return None
            code = ResponseCode.PULL_NOT_FOUND
        else:
            data = queue[offset - first :][: int(ext["maxMsgNums"])]
            following = offset + len(data)
            code = ResponseCode.SUCCESS
        fields = {
            "suggestWhichBrokerId": "0",
            "nextBeginOffset": str(following),
            "minOffset": str(first),
            "maxOffset": str(end),
        }
        if key in self.deltas:
            fields["offsetDelta"] = str(self.deltas[key])
        return answer(code, fields, b"".join(data))

    def _look_again(
        self, link: PuppetLink, command: Command, is_last: bool = False
    ) -> None:
        found = self._look(command.ext or {}, is_last)
        if found is None:
            self._held.append((link, command))
        else:
            found.opaque = command.opaque
            link.send(found)

    def _give_up(self, link: PuppetLink, command: Command) -> None:
        if (link, command) in self._held:
            self._held.remove((link, command))
            self._look_again(link, command, is_last=True)

    def _pop(self, link: PuppetLink, command: Command) -> Answer:
        found = self._look_for_pop(command.ext or {})
        if found is None:
            self._pops.append((link, command))
        return found

    def _pop_again(self, link: PuppetLink, command: Command) -> None:
        if link.is_open:
            found = self._pop(link, command)
            if isinstance(found, Command):
                found.opaque = command.opaque
                link.send(found)

    def _look_for_pop(self, ext: dict[str, str]) -> Command | None:
        now = self._runtime.monotonic()
        invisible = int(ext["invisibleTime"]) / 1000
        offsets: dict[int, list[int]] = {}
        data: list[bytes] = []
        for (topic, queue_id), queue in sorted(self.queues.items()):
            if topic != ext["topic"]:
                continue
            for offset, one in enumerate(queue):
                place = (topic, queue_id, offset)
                is_hidden = self._visible_at.get(place, 0.0) > now
                if place in self.acks or is_hidden:
                    continue
                if len(data) == int(ext["maxMsgNums"]):
                    break
                self._visible_at[place] = now + invisible
                self._runtime.call_later(invisible, self._retry_pops)
                offsets.setdefault(queue_id, []).append(offset)
                data.append(one)
        if not data:
            return None
        starts = [f"0 {number} {some[0]}" for number, some in offsets.items()]
        each = [
            f"0 {number} {','.join(map(str, some))}" for number, some in offsets.items()
        ]
        fields = {
            "popTime": str(self._runtime.wall_ms()),
            "invisibleTime": ext["invisibleTime"],
            "reviveQid": "0",
            "restNum": "0",
            "startOffsetInfo": ";".join(starts),
            "msgOffsetInfo": ";".join(each),
        }
        return answer(0, fields, b"".join(data))

    def _retry_pops(self) -> None:
        pops, self._pops = self._pops, []
        for link, command in pops:
            self._pop_again(link, command)

    def _end_pop(self, code: int, ext: dict[str, str]) -> Command:
        handle = ReceiptHandle.parse(ext["extraInfo"])
        place = (ext["topic"], handle.queue_id, int(ext["offset"]))
        assert handle.offset == place[2], "the handle is another message's"
        if code == RequestCode.ACK_MESSAGE:
            self.acks.add(place)
            return answer()
        rest = int(ext["invisibleTime"]) / 1000
        self._visible_at[place] = self._runtime.monotonic() + rest
        self._runtime.call_later(rest, self._retry_pops)
        fields = {
            "popTime": str(self._runtime.wall_ms()),
            "invisibleTime": ext["invisibleTime"],
            "reviveQid": "0",
        }
        return answer(0, fields)

    def _send_back(self, ext: dict[str, str]) -> Command:
        position = int(ext["offset"])
        group = ext["group"]
        (message,) = (
            found
            for queue in self.queues.values()
            for data in queue
            if (found := record.decode(data)).position == position
        )
        text = dict(message.properties)
        text.setdefault(properties.RETRY_TOPIC, ext["originTopic"])
        times = message.reconsume_times + 1
        level = int(ext["delayLevel"])
        if level < 0 or message.reconsume_times >= int(ext["maxReconsumeTimes"]):
            self.put(names.dlq_topic(group), 0, message.body, text)
        else:
            topic = names.retry_topic(group)
            self._runtime.call_later(
                RETRY_SECONDS, self._retry, topic, message.body, text, times
            )
        return answer()

    def _retry(self, topic: str, body: bytes, text: dict[str, str], times: int) -> None:
        self.put(topic, 0, body, text, reconsume_times=times)

    # Groups.

    def _heartbeat(self, link: PuppetLink, command: Command) -> Command:
        data = HeartbeatData.from_json(fastjson.loads(command.body))
        if link not in self.clients:
            link.at_end.append(lambda: self._lost(link))
        self.clients[link] = data.client_id
        self.heartbeats.append(data)
        for consumer in data.consumer_data_set:
            group = consumer.group_name
            self._cluster.topics.setdefault(names.retry_topic(group), {self.name: 1})
            members = self.groups.setdefault(group, {})
            is_new = link not in members
            if is_new or not data.without_sub:
                members[link] = consumer
            if is_new:
                self._notify(group)
        return answer(ext=self.heartbeat_answer)

    def _notify(self, group: str) -> None:
        for link in self.groups.get(group, {}):
            code = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
            link.send(Command(code, {"consumerGroup": group}, flag=ONEWAY))

    def _unregister(self, link: PuppetLink, ext: dict[str, str]) -> Command:
        group = ext.get("consumerGroup")
        if group is not None and self.groups.get(group, {}).pop(link, None) is not None:
            self._notify(group)
        return answer()

    def _lost(self, link: PuppetLink) -> None:
        self.clients.pop(link, None)
        for group, members in self.groups.items():
            if members.pop(link, None) is not None:
                self._notify(group)

    def members(self, group: str) -> list[str]:
        """The client ids of a group."""
        return [self.clients[link] for link in self.groups.get(group, {})]

    def _members(self, group: str) -> Command:
        found = self.members(group)
        if not found:
            return answer(1, remark=f"no consumer for this group, {group}")
        return answer(body=fastjson.dumps({"consumerIdList": found}))

    def _assign(self, command: Command) -> Command:
        modes = self._cluster.modes
        if modes is None:
            return answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark="400")
        body = Fields(fastjson.loads(command.body), "a question")
        topic, me = body.text("topic") or "", body.text("clientId") or ""
        members = sorted(self.members(body.text("consumerGroup") or ""))
        queues = [
            MessageQueue(topic, name, number)
            for name, count in sorted(self._cluster.topics[topic].items())
            for number in range(count)
        ]
        mode = modes.get(topic, "PULL")
        found = allocate(body.text("strategyName") or "", queues, members, me)
        if mode == "POP":
            names_of_all = sorted({queue.broker_name for queue in queues})
            found = [MessageQueue(topic, name, -1) for name in names_of_all]
        if found is None:
            return answer(body=b"{}")
        assignments = [{"messageQueue": one, "mode": mode} for one in found]
        table = {"messageQueueAssignments": assignments}
        return answer(body=fastjson.dumps(table))

    def _access(self, ext: dict[str, str]) -> Command:
        """A user, or the policies of a subject."""
        documents = self._cluster.documents
        if "username" in ext:
            user = documents.users.get(ext["username"])
            return answer(body=b"" if user is None else fastjson.dumps(user_json(user)))
        name = name_of(ext["subject"]) or ""
        if name not in documents.users:
            return answer(
                ResponseCode.NO_PERMISSION, remark="The subject is not exist."
            )
        acl = documents.acls.get(name)
        return answer(body=b"" if acl is None else fastjson.dumps(acl_json(acl)))

    def _lock(self, command: Command) -> Command:
        body = LockBatchBody.from_json(fastjson.loads(command.body))
        now = self._runtime.monotonic()
        got: list[MessageQueue] = []
        for queue in body.mq_set:
            key = (body.consumer_group, (queue.topic, queue.queue_id))
            owner, until = self.locks.get(key, ("", 0.0))
            if owner not in ("", body.client_id) and until > now:
                continue
            if command.code == RequestCode.LOCK_BATCH_MQ:
                self.locks[key] = (body.client_id, now + LOCK_SECONDS)
                got.append(queue)
            else:
                self.locks.pop(key, None)
        return answer(body=fastjson.dumps({"lockOKMQSet": got}))

    # Offsets.

    def _commit(self, ext: dict[str, str], offset: int) -> None:
        key = (ext["consumerGroup"], ext["topic"], int(ext["queueId"]))
        self.offsets[key] = offset
        self.commits.append((*key, offset))

    def _offset(self, code: int, ext: dict[str, str]) -> Command:
        key = (ext["topic"], int(ext["queueId"]))
        first = self.first.get(key, 0)
        if code == RequestCode.UPDATE_CONSUMER_OFFSET:
            self._commit(ext, int(ext["commitOffset"]))
            return answer()
        if code == RequestCode.QUERY_CONSUMER_OFFSET:
            offset = self.offsets.get((ext["consumerGroup"], *key))
            if offset is None:
                return answer(ResponseCode.QUERY_NOT_FOUND, remark="Not found")
            return answer(ext={"offset": str(offset)})
        values = {
            RequestCode.GET_MIN_OFFSET: first,
            RequestCode.GET_MAX_OFFSET: first + len(self.queues.get(key, [])),
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: max(
                first, int(ext.get("timestamp", "0")) - 1000
            ),
        }
        return answer(ext={"offset": str(values[RequestCode(code)])})


@final
class PuppetCluster:
    """A name server and brokers.

    @ivar runtime: where they are.
    @ivar names: where the name server is.
    @ivar brokers: by name; C{b1} is at C{b1:10911}.
    @ivar topics: how many queues a topic has on each of its brokers.
    @ivar modes: how brokers assign a topic, C{PULL} or C{POP}; None: they assign none.
    @ivar leaders: of static topics: which broker has each logical queue, None for none.
    @ivar kinds: the types of topics that have one.
    @ivar group_configs: the settings of groups.
    @ivar documents: users and policies of ACL 2.0; nobody is refused by them.
    """

    def __init__(
        self, runtime: MemoryRuntime, *brokers: str, names: str = "ns:9876"
    ) -> None:
        self.runtime = runtime
        self.names = names
        self.topics: dict[str, dict[str, int]] = {}
        self.modes: dict[str, str] | None = {}
        self.leaders: dict[str, list[str | None]] = {}
        self.kinds: dict[str, str] = {}
        self.group_configs: dict[str, SubscriptionGroupConfig] = {}
        self.documents = Documents()
        self._position = 0
        self.brokers = {name: PuppetBroker(self, name) for name in brokers or ("b1",)}
        runtime.servers[names] = self.name_server
        for name in self.brokers:
            self.start(name)

    def address(self, broker: str) -> str:
        """Where a broker is."""
        return f"{broker}:10911"

    def start(self, broker: str) -> None:
        """Let a broker listen."""
        self.runtime.servers[self.address(broker)] = self.brokers[broker]

    def stop(self, broker: str) -> None:
        """Stop a broker; what it has stored is kept."""
        self.runtime.servers.pop(self.address(broker), None)
        self.runtime.cut(self.address(broker))

    def position(self) -> int:
        """A physical offset that no message has yet."""
        self._position += 1000
        return self._position

    def name_server(self, link: PuppetLink, command: Command) -> Command:
        """Answer as a name server."""
        assert command.code == RequestCode.GET_ROUTEINFO_BY_TOPIC
        topic = (command.ext or {})["topic"]
        if topic == names.AUTO_CREATE_TOPIC:
            queues = dict.fromkeys(self.brokers, 8)
        elif topic in self.topics:
            queues = self.topics[topic]
        else:
            return answer(ResponseCode.TOPIC_NOT_EXIST, remark="No topic route info")
        route = TopicRouteData(
            queue_datas=[
                QueueData(
                    broker_name=name,
                    read_queue_nums=count,
                    write_queue_nums=count,
                    perm=6,
                )
                for name, count in queues.items()
            ],
            broker_datas=[
                BrokerData(
                    cluster=CLUSTER,
                    broker_name=name,
                    broker_addrs={0: self.address(name)},
                )
                for name in queues
            ],
        )
        leaders = self.leaders.get(topic, [])
        infos = {
            name: TopicQueueMappingInfo(
                topic=topic,
                total_queues=len(leaders),
                bname=name,
                epoch=1,
                curr_id_map={at: at for at, one in enumerate(leaders) if one == name},
            )
            for name in {one for one in leaders if one is not None}
        }
        if infos:
            route = attrs.evolve(route, topic_queue_mapping_by_broker=infos)
        return answer(body=fastjson.dumps(route))
