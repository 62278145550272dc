"""What a client has to be able to do, as scenarios for the one for asyncio.

The official client's scenarios, written anew: the same names, and the same is asserted.
They share nothing but a cluster, so all may run at once. What operators do in them is
done with the requests of the command line. Times have no limits but those that show a
mistake, as machines may be busy. The other faces play the same text,
L{tests.integration.client_faces}.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any

from rocketbroker.aio import (
    Message,
    MessageStream,
    MessageView,
    ReceivedMessage,
    Session,
)
from rocketbroker.blocking import Client, Settings
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.requests import brokers, groups, topics
from rocketbroker.client.errors import MessageIllegal, TopicNotExist
from rocketbroker.errors import SystemFailure
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fields import Fields
from rocketbroker.wire.headers.admin import ConsumeMessageDirectlyResultRequestHeader
from tests.integration.client_faces import using

#: How long a scenario may take, in seconds; nothing is asserted about it.
SECONDS = 120.0

#: How long a request may take: what was sent again after less could be there twice.
REQUEST_SECONDS = 60.0

#: How long a broker may take until the name server knows it, in seconds.
KNOWN_SECONDS = 60.0

#: Nothing more comes if nothing came for so long.
SILENCE = 0.5


class Scene:
    """Where a scenario plays.

    @ivar names: the name server.
    @ivar folder: for files.
    @ivar cluster: what operators ask.
    """

    def __init__(self, names: str, connect: Callable[..., Session]) -> None:
        """
        @param connect: that of a face.
        """
        self.names = names
        self._connect = connect
        self.folder = tempfile.TemporaryDirectory()
        self._client = Client(Settings(names))
        self.cluster = Cluster(self._client)

    def close(self) -> None:
        """Close and remove what it has."""
        self._client.close()
        self.folder.cleanup()

    def fresh(self, prefix: str) -> str:
        """A name that nothing else has."""
        return f"{prefix}_{random.getrandbits(40):010x}"

    def topic(self, queues: int) -> str:
        """A topic that nothing else uses."""
        name = self.fresh("T")
        self._client.create_topic(name, queues)
        return name

    def connect(self, **options: Any) -> Session:
        """A session of its own."""
        return self._connect(self.names, **{"seconds": REQUEST_SECONDS, **options})

    async def broker_is_known(self) -> None:
        """Wait for the broker: Java's says that it is ready before it is registered."""
        while not self._client.masters():
            await asyncio.sleep(0.1)

    def reader(
        self, mq: Session, topic: str, group: str | None = None, **options: Any
    ) -> MessageStream:
        """A consumer from the first message on."""
        group = group or self.fresh("G")
        return mq.consumer(topic, group, **{"start": "earliest", **options})

    def broker(self, topic: str) -> Broker:
        """The broker of a topic."""
        return next(self.cluster.brokers_of(topic))

    def total(self, topic: str) -> int:
        """How many messages a topic has."""
        client = self._client
        return sum(
            client.max_offset(queue) - client.min_offset(queue)
            for queue in client.queues(topic)
        )


async def read(stream: MessageStream, count: int) -> list[ReceivedMessage]:
    """The next messages, acknowledged."""
    found: list[ReceivedMessage] = []
    while len(found) < count:
        message = await stream.next()
        assert message is not None
        await message.ack()
        found.append(message)
    return found


async def until(ready: Callable[[], bool]) -> None:
    """Wait until something is so."""
    while not ready():
        await asyncio.sleep(0.02)


def equal(wanted: object, found: object) -> None:
    """Fail unless both are the same."""
    assert wanted == found, f"want {wanted}, got {found}"


def texts(messages: list[ReceivedMessage]) -> list[str]:
    """Their bodies, sorted."""
    return sorted(message.text for message in messages)


# Sending.


async def send_receive(scene: Scene) -> None:
    """All bodies, tags, keys, properties and times arrive."""
    topic, sent = scene.topic(4), []
    async with scene.connect() as mq, scene.reader(mq, topic) as messages:
        for number in range(100):
            sent.append(f"body-{number}-\u4e2d\u6587")
            key, more = f"k{number}", {"n": str(number)}
            result = await mq.send(topic, sent[-1], tag="A", keys=key, properties=more)
            assert result.message_id and result.offset_ids[0]
            equal(0, result.status)
        found = await read(messages, 100)
    equal(sorted(sent), texts(found))
    for message in found:
        equal("A", message.tag)
        equal([f"k{message.properties['n']}"], message.keys)
        assert message.stored_at > 0 and message.sent_at > 0


async def send_async(scene: Scene) -> None:
    """Many sends at once are all stored."""
    topic = scene.topic(4)
    async with scene.connect() as mq:
        sends = (mq.send(topic, f"async-{number}") for number in range(500))
        results = await asyncio.gather(*sends)
    equal({0}, {result.status for result in results})
    await until(lambda: scene.total(topic) == 500)


async def send_oneway(scene: Scene) -> None:
    """What is not waited for is stored all the same."""
    topic = scene.topic(4)
    async with scene.connect() as mq:
        for number in range(50):
            await mq.send_oneway(topic, f"oneway-{number}")
        await until(lambda: scene.total(topic) == 50)


async def send_batch(scene: Scene) -> None:
    """One request, forty messages, each with its id."""
    topic = scene.topic(1)
    batch = [Message(topic, f"batch-{number}", "B") for number in range(40)]
    async with scene.connect() as mq:
        (result,) = await mq.send_batch(batch)
        equal(40, len(set(result.message_ids)))
        async with scene.reader(mq, topic, tags="B") as messages:
            found = await read(messages, 40)
    equal(sorted(f"batch-{number}" for number in range(40)), texts(found))


async def send_all(scene: Scene) -> None:
    """A stream of them: results in their order. RocketMQ's brokers store what is under
    way at once in any order."""
    topic = scene.topic(1)
    stream = (Message(topic, f"stream-{number}") for number in range(300))
    async with scene.connect() as mq:
        results = [result async for result in mq.send_all(stream)]
        equal([*range(300)], sorted(result.queue_offset for result in results))
        async with scene.reader(mq, topic) as messages:
            found = await read(messages, 300)
    ids = {message.message_id: message.text for message in found}
    sent = [ids[result.message_id] for result in results]
    equal([f"stream-{number}" for number in range(300)], sent)


async def auto_create(scene: Scene) -> None:
    """A topic comes with its first message."""
    topic = scene.fresh("AUTO")
    async with scene.connect() as mq:
        await mq.send(topic, "auto")
        async with scene.reader(mq, topic) as messages:
            equal(["auto"], texts(await read(messages, 1)))


async def compressed(scene: Scene) -> None:
    """A long body is the same in the end, in all ways to compress."""
    topic, body = scene.topic(1), "compress me " * 4200
    for how in ("zlib", "lz4", "zstd"):
        async with scene.connect(compress=how) as mq:
            await mq.send(topic, body)
    async with scene.connect() as mq, scene.reader(mq, topic) as messages:
        found = await read(messages, 3)
    equal([body] * 3, texts(found))


async def too_large(scene: Scene) -> None:
    """The broker refuses with 13, and goes on."""
    topic = scene.topic(1)
    async with scene.connect(max_body_bytes=16 << 20, compress_over=16 << 20) as mq:
        try:
            await mq.send(topic, bytes(5 << 20))
        except MessageIllegal as problem:
            equal(13, problem.code)
        else:
            raise AssertionError("5 MiB are accepted")
        await mq.send(topic, "still alive")


# Receiving.


async def long_poll(scene: Scene) -> None:
    """Pulls that wait are woken."""
    topic = scene.topic(1)
    delays = []
    async with scene.connect() as mq, scene.reader(mq, topic) as messages:
        for number in range(21):
            await mq.send(topic, f"lp-{number}")
            stored = time.monotonic()
            await read(messages, 1)
            delays.append(time.monotonic() - stored)
            await asyncio.sleep(0.05)
    # A pull that was not woken ends after 15 s.
    assert statistics.median(delays) < 5.0, delays


async def pull(scene: Scene) -> None:
    """Queues that a reader names, from their first message to the last, and again."""
    topic = scene.topic(2)
    async with scene.connect() as mq:
        results = [await mq.send(topic, f"pull-{number}") for number in range(60)]
        queues = sorted({result.queue for result in results})
        lite = mq.lite_pull(scene.fresh("G"), queues=queues, start="earliest")
        async with lite:
            found: list[str] = []
            while len(found) < 60:
                found += [one.text for one in await lite.poll(1.0, 7)]
            equal(sorted(f"pull-{number}" for number in range(60)), sorted(found))
            await lite.commit()
            for queue in queues:
                equal(30, await lite.committed(queue))
            await lite.seek(queues[0], 25)
            again: list[str] = []
            while len(again) < 5:
                again += [one.text for one in await lite.poll(1.0)]
            equal(5, len(again))


async def lite_pull(scene: Scene) -> None:
    """A member of a group polls all."""
    topic = scene.topic(4)
    async with scene.connect() as mq:
        for number in range(60):
            await mq.send(topic, f"lite-{number}")
        found: set[str] = set()
        group = scene.fresh("G")
        async with mq.lite_pull(group, topic, start="earliest") as lite:
            while len(found) < 60:
                found.update(one.text for one in await lite.poll(1.0))


async def tags(scene: Scene) -> None:
    """Only the tags that are wanted."""
    topic = scene.topic(2)
    async with scene.connect() as mq:
        for number in range(30):
            tag = f"T{number % 3}"
            await mq.send(topic, f"{tag}-{number}", tag=tag)
        async with scene.reader(mq, topic, tags="T0 || T2") as messages:
            found = await read(messages, 20)
            assert await messages.next(SILENCE) is None
    equal({"T0", "T2"}, {message.tag for message in found})


async def sql92(scene: Scene) -> None:
    """Only the properties that are wanted."""
    topic = scene.topic(2)
    wanted = "a BETWEEN 10 AND 19 AND c IN ('even') AND TAGS IS NOT NULL"
    async with scene.connect() as mq:
        for number in range(30):
            more = {"a": str(number), "c": "odd" if number % 2 else "even"}
            await mq.send(topic, f"s-{number}", tag="S", properties=more)
        async with scene.reader(mq, topic, sql=wanted) as messages:
            found = await read(messages, 5)
            assert await messages.next(SILENCE) is None
    equal([f"s-{number}" for number in range(10, 20, 2)], texts(found))


async def orderly(scene: Scene) -> None:
    """Each key in its order, also if one message fails once."""
    topic = scene.topic(4)
    seen: dict[str, list[int]] = {}
    failed: list[ReceivedMessage] = []
    async with scene.connect() as mq:
        for number in range(200):
            key = str(number % 10)
            await mq.send(topic, f"{key}:{number // 10}", order_key=key)
        async with scene.reader(mq, topic, ordered=True) as messages:
            async for message in messages:
                key, place = message.text.split(":")
                if message.text == "3:5" and not failed:
                    failed.append(message)
                    await message.retry()
                    continue
                seen.setdefault(key, []).append(int(place))
                await message.ack()
                if sum(map(len, seen.values())) == 200:
                    break
    equal({str(key): [*range(20)] for key in range(10)}, seen)
    assert failed


async def cluster_share(scene: Scene) -> None:
    """Two members share; the one that is left has all."""
    topic, group = scene.topic(4), scene.fresh("G")
    one: list[ReceivedMessage] = []
    two: list[ReceivedMessage] = []

    async def into(stream: MessageStream, box: list[ReceivedMessage]) -> None:
        async for message in stream:
            box.append(message)
            await message.ack()

    async with scene.connect() as mq:
        first = scene.reader(mq, topic, group)
        second = scene.reader(mq, topic, group)

        def owned(stream: MessageStream) -> int:
            return sum(queue.topic == topic for queue in stream.queues)

        async with first, second:
            await until(lambda: owned(first) == owned(second) == 2)
            reading = [
                asyncio.create_task(into(first, one)),
                asyncio.create_task(into(second, two)),
            ]
            await asyncio.gather(*(mq.send(topic, f"share-{n}") for n in range(200)))
            await until(lambda: len({*texts(one), *texts(two)}) == 200)
            assert len(one) > 20 and len(two) > 20, (len(one), len(two))
            await first.close()
            await asyncio.gather(*(mq.send(topic, f"after-{n}") for n in range(100)))
            after = {f"after-{n}" for n in range(100)}
            await until(lambda: after <= {*texts(two)})
        await asyncio.gather(*reading)


async def retry(scene: Scene) -> None:
    """What comes again has its topic, and says how often it came."""
    topic = scene.topic(1)
    async with scene.connect() as mq, scene.reader(mq, topic) as messages:
        await mq.send(topic, "retry me")
        first = await messages.next()
        assert first is not None
        await first.retry(delay_level=1)
        (second,) = await read(messages, 1)
    equal((1, 2), (first.attempt, second.attempt))
    equal((topic, "retry me"), (second.topic, second.text))


async def dead_letter(scene: Scene) -> None:
    """After its attempts a message is put aside."""
    topic, group = scene.topic(1), scene.fresh("G")
    async with scene.connect() as mq:
        await mq.send(topic, "doomed")
        async with scene.reader(mq, topic, group, max_attempts=1) as messages:
            for _ in range(2):
                message = await messages.next()
                assert message is not None
                await message.retry(delay_level=1)
            async with scene.reader(mq, f"%DLQ%{group}") as dead:
                equal(["doomed"], texts(await read(dead, 1)))


async def delay_level(scene: Scene) -> None:
    """Level 2 is five seconds."""
    await _delayed(scene, 4.8, delay_level=2)


async def timer(scene: Scene) -> None:
    """Three seconds, from brokers of 5.0 on."""
    await _delayed(scene, 1.9, delay=3.0)


async def _delayed(scene: Scene, least: float, **options: Any) -> None:
    topic = scene.topic(1)
    async with scene.connect() as mq, scene.reader(mq, topic) as messages:
        begun = time.monotonic()
        await mq.send(topic, "later", **options)
        equal(["later"], texts(await read(messages, 1)))
        took = time.monotonic() - begun
    assert took >= least, f"after {took} s"


async def transaction(scene: Scene) -> None:
    """Commit, rollback, and both after the broker has asked."""
    topic = scene.topic(1)
    mq = scene.connect(group=scene.fresh("PG"))
    asked: set[str] = set()

    @mq.check(topic)
    def decide(message: Any) -> bool:
        asked.add(message.text)
        return bool(message.text == "unknown-yes")

    immune = {"CHECK_IMMUNITY_TIME_IN_SECONDS": "2"}
    async with mq, scene.reader(mq, topic) as messages:
        for text in ("unknown-yes", "unknown-no", "rollback", "commit"):
            begun = await mq.transaction(topic, text, properties=immune)
            if text == "commit":
                await begun.commit()
            elif text == "rollback":
                await begun.rollback()
        wanted, found = {"commit", "unknown-yes"}, set[str]()
        while found < wanted:
            found.update(texts(await read(messages, 1)))
        equal(wanted, found)
        await until(lambda: asked >= {"unknown-yes", "unknown-no"})
        # A broker that is slow asks twice, and then may commit twice.
        late = await messages.next(SILENCE)
        assert late is None or late.text == "unknown-yes", late


async def request_reply(scene: Scene) -> None:
    """Who asks has the reply, a short one and one that is sent compressed."""
    topic = scene.topic(1)
    async with scene.connect() as mq, scene.reader(mq, topic) as messages:

        async def reply() -> None:
            for times in (1, 2000):
                message = await messages.next()
                assert message is not None
                await message.reply(f"re:{message.text}" * times, tag="r")
                await message.ack()

        replying = asyncio.create_task(reply())
        for times in (1, 2000):
            found = await mq.request(topic, "ping", timeout=30.0)
            equal(("re:ping" * times, "r"), (found.text, found.tag))
        await replying


async def offsets(scene: Scene) -> None:
    """By time; committed; nothing again after a clean restart; reset to a time."""
    topic, group = scene.topic(1), scene.fresh("G")
    async with scene.connect() as mq:
        for number in range(10):
            await mq.send(topic, f"first-{number}")
        await asyncio.sleep(1.1)
        middle = time.time()
        await asyncio.sleep(1.1)
        for number in range(10):
            result = await mq.send(topic, f"second-{number}")
        # A pull that a member has left behind at RocketMQ's broker takes a reset away;
        # such pulls are looked at every five seconds.
        async with scene.reader(mq, topic, group, hold_seconds=1.0) as messages:
            await read(messages, 20)
        async with scene.reader(mq, topic, group, hold_seconds=1.0) as messages:
            assert await messages.next(7.0) is None
            broker, ms = scene.broker(topic), round(middle * 1000)
            reset = partial(groups.reset, scene.cluster, broker, group, topic, ms)
            await asyncio.to_thread(reset)
            again = await read(messages, 10)
            assert await messages.next(SILENCE) is None
        equal([f"second-{number}" for number in range(10)], texts(again))
        async with mq.lite_pull(scene.fresh("G"), queues=[result.queue]) as lite:
            equal(10, await lite.offset_for_time(result.queue, middle))


async def query(scene: Scene) -> None:
    """By one of several keys, by the id of the send, and by the offset id."""
    topic = scene.topic(1)
    begin = time.time() - 1
    async with scene.connect() as mq:
        keys = ["order-77", "alias-77"]
        result = await mq.send(topic, "find me", keys=keys)
        for number in range(20):
            await mq.send(topic, "noise", keys=f"noise{number}")
        found: list[MessageView] = []
        while not found:
            end = time.time() + 1
            found = await mq.find(topic, key="alias-77", begin=begin, end=end)
        (message,) = found
        equal(("find me", keys), (message.text, message.keys))
        for message_id in (result.message_id, result.offset_ids[0]):
            (message,) = await mq.find(topic, message_id=message_id)
            equal("find me", message.text)
            equal((result.queue, 0), (message.queue, message.offset))


async def topic_lifecycle(scene: Scene) -> None:
    """A topic that is deleted is one that does not exist."""
    topic, cluster = scene.topic(3), scene.cluster
    async with scene.connect() as mq, scene.reader(mq, topic) as messages:
        equal(3, sum(queue.topic == topic for queue in messages.queues))
    assert topic in cluster.client.topics()
    topics.delete(cluster, scene.broker(topic), topic)
    for name_server in cluster.name_servers:
        topics.forget(cluster, name_server, topic)
    async with scene.connect() as mq:
        try:
            async with scene.reader(mq, topic, wait_for_topic=False):
                raise AssertionError("the route is still there")
        except TopicNotExist as problem:
            equal(17, problem.code)


async def admin_tables(scene: Scene) -> None:
    """What operators see of a topic, a group and a member; and what they ask of it."""
    topic, group, other = scene.topic(2), scene.fresh("G"), scene.fresh("G")
    cluster, broker = scene.cluster, scene.broker(topic)
    equal(2, len(topics.statistics(cluster, broker, topic).offset_table))
    info = await _runtime_info(scene, broker)
    assert {"putTps", "getFoundTps", "commitLogMaxOffset", "bootTimestamp"} <= {*info}
    equal(broker.name, brokers.settings(cluster, broker)["brokerName"])
    handled: list[str] = []
    async with scene.connect() as mq:

        @mq.on(topic, group=other, start="earliest")
        def handle(message: ReceivedMessage) -> None:
            handled.append(message.message_id)

        running = asyncio.create_task(mq.run())
        result = await mq.send(topic, "x")
        async with scene.reader(mq, topic, group) as messages:
            await read(messages, 1)
            await until(lambda: bool(handled))
            # RocketMQ's broker tells a group when it has committed an offset.
            consumers = partial(topics.groups_of, cluster, broker, topic)
            await until(lambda: {group, other} == {*consumers()})
            rows = await asyncio.to_thread(_member_rows, scene, broker, group)
            equal(2, sum(queue.topic == topic for queue in rows))
            direct = partial(_run_directly, scene, broker, other, result.offset_ids[0])
            equal("CR_SUCCESS", await asyncio.to_thread(direct))
        mq.stop()
        await running
    equal([result.message_id] * 2, handled)


async def _runtime_info(scene: Scene, broker: Broker) -> dict[str, str]:
    """What a broker tells of itself; that of RocketMQ 4.9 fails in its first second."""
    while True:
        try:
            return brokers.runtime_info(scene.cluster, broker)
        except SystemFailure:
            await asyncio.sleep(0.1)


def _member_rows(scene: Scene, broker: Broker, group: str) -> list[Any]:
    """The queues of the only member of a group, as it tells them."""
    members = groups.members(scene.cluster, broker, group)
    assert members is not None
    (member,) = members.connection_set
    return groups.queues_of_member(scene.cluster, broker, group, member.client_id)


def _run_directly(scene: Scene, broker: Broker, group: str, place: str) -> str:
    """Let the only member of a group consume a message; the outcome."""
    members = groups.members(scene.cluster, broker, group)
    assert members is not None
    (member,) = members.connection_set
    header = ConsumeMessageDirectlyResultRequestHeader(
        consumer_group=group, client_id=member.client_id, msg_id=place
    )
    code = RequestCode.CONSUME_MESSAGE_DIRECTLY
    return scene.cluster.read(
        broker.address,
        code,
        lambda body: Fields(body, "a result").text("consumeResult") or "",
        header,
    )


async def broadcast(scene: Scene) -> None:
    """Each of two members has all."""
    topic, group = scene.topic(4), scene.fresh("G")
    options = {"broadcast": True, "offset_folder": scene.folder.name}
    wanted = sorted(f"bc-{number}" for number in range(20))
    async with (
        scene.connect(instance_name=scene.fresh("i")) as one,
        scene.connect(instance_name=scene.fresh("i")) as two,
        scene.reader(one, topic, group, **options) as first,
        scene.reader(two, topic, group, **options) as second,
    ):
        for text in wanted:
            await one.send(topic, text)
        for stream in (first, second):
            equal(wanted, texts(await read(stream, 20)))


Scenario = Callable[[Scene], Awaitable[None]]

SCENARIOS: dict[str, Scenario] = {
    "send-receive": send_receive,
    "send-async": send_async,
    "send-oneway": send_oneway,
    "send-batch": send_batch,
    "send-all": send_all,
    "auto-create": auto_create,
    "compressed": compressed,
    "too-large": too_large,
    "long-poll": long_poll,
    "pull": pull,
    "lite-pull": lite_pull,
    "tags": tags,
    "sql92": sql92,
    "orderly": orderly,
    "broadcast": broadcast,
    "cluster-share": cluster_share,
    "retry": retry,
    "dead-letter": dead_letter,
    "delay-level": delay_level,
    "timer": timer,
    "transaction": transaction,
    "request-reply": request_reply,
    "query": query,
    "offsets": offsets,
    "topic-lifecycle": topic_lifecycle,
    "admin-tables": admin_tables,
}


async def failures(
    names: str, without: Collection[str] = (), face: str = "aio"
) -> dict[str, str]:
    """Run all scenarios at once; what failed, and why.

    @param names: the name server.
    @param without: those that the broker cannot do.
    @param face: see L{using}.
    """
    with using(face) as connect:
        scene = Scene(names, connect)
        found: dict[str, str] = {}

        async def play(name: str, scenario: Scenario) -> None:
            try:
                await asyncio.wait_for(scenario(scene), SECONDS)
            except Exception as problem:
                found[name] = f"{type(problem).__name__}: {problem}"

        try:
            await asyncio.wait_for(scene.broker_is_known(), KNOWN_SECONDS)
            await asyncio.gather(
                *(
                    play(name, scenario)
                    for name, scenario in SCENARIOS.items()
                    if name not in without
                )
            )
        finally:
            scene.close()
    return found
