"""The official Java client, 4.9 and 5.3, against our name server and broker."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.threads import MessageStream, connect
from scripts.lab.javaclient import (
    PATIENCE,
    JavaClient,
    JavaError,
    body_of,
    encoded,
)
from scripts.lab.servers import Cluster
from tests.integration.asker import Asker
from tests.integration.javacase import JavaCase, fresh, until

#: How much later than its level a message may be stored, in ms: less than there is
#: between two levels.
LATE_MS = 4000

#: How a transaction ends, as a producer of the test says.
COMMITTED = "COMMIT_MESSAGE"


class SendAndReceive(JavaCase):
    """Sending in all ways; pulling; consuming with and without company."""

    def test_everyWayOfSending(self) -> None:
        """Sync, async, oneway and batch: all arrive once, with all they carry."""
        topic, producer = self.topic(), self.producer()
        consumer = self.consumer(topic)
        wanted: dict[bytes, str] = {}
        for mode in ("sync", "async", "oneway"):
            for number in range(10):
                body = f"{mode} {number} \u4e2d".encode()
                wanted[body] = f"key{mode}{number}"
                answer = self.java.send(
                    producer,
                    topic,
                    body,
                    mode=mode,
                    tags="TagA",
                    keys=wanted[body],
                    properties={"colour": f"{mode} red"},
                )
                if mode != "oneway":
                    self.assertEqual(answer["status"], "SEND_OK")
                    self.assertEqual(len(answer["offsetMsgId"]), 32)
        batch = [
            {"body": encoded(b"batch %d" % n), "tags": "TagA", "keys": f"keyb{n}"}
            for n in range(20)
        ]
        answer = self.java("sendBatch", name=producer, topic=topic, messages=batch)
        self.assertEqual(answer["status"], "SEND_OK")
        self.assertEqual(len(answer["offsetMsgId"].split(",")), 20)
        wanted.update({b"batch %d" % n: f"keyb{n}" for n in range(20)})

        got = self.java.received(consumer, len(wanted))

        self.assertEqual({body_of(m): m["keys"] for m in got}, wanted)
        self.assertEqual(len(got), len(wanted))
        self.assertEqual({m["tags"] for m in got}, {"TagA"})
        for message in got:
            self.assertEqual(message["bornHost"], "127.0.0.1")
            if not body_of(message).startswith(b"batch"):
                colour = message["properties"]["colour"]
                self.assertTrue(body_of(message).startswith(colour.split()[0].encode()))

    def test_offsetsAreDense(self) -> None:
        """The messages of one queue have the offsets 0, 1, 2 and so on."""
        topic, producer = self.topic(2), self.producer()
        answers = [
            self.java.send(producer, topic, b"x", broker="broker-a", queue=1)
            for _ in range(20)
        ]
        self.assertEqual([a["offset"] for a in answers], list(range(20)))
        self.assertEqual({a["queue"] for a in answers}, {1})

    def test_autoCreate(self) -> None:
        """Sending to a topic that nobody made makes it, and all is received."""
        topic, producer = fresh("AUTO"), self.producer()
        for number in range(8):
            self.java.send(producer, topic, b"auto %d" % number)
        got = self.java.received(self.consumer(topic), 8)
        self.assertEqual({body_of(m) for m in got}, {b"auto %d" % n for n in range(8)})

    def test_compressed(self) -> None:
        """A body that the client compresses comes back as it was."""
        topic, producer = self.topic(), self.producer(compressOver=1024)
        body = b"compress me " * 5000
        self.java.send(producer, topic, body)
        got = self.java.received(self.consumer(topic), 1)
        self.assertEqual([body_of(m) for m in got], [body])

    def test_tooLarge(self) -> None:
        """Over 4 MiB is MESSAGE_ILLEGAL; the connection stays good for the next."""
        topic = self.topic()
        producer = self.producer(
            compressOver=1 << 30, maxMessageSize=16 << 20, retries=0
        )
        noise = random.Random(1).randbytes((4 << 20) + 1)
        error = self.assertRaises(JavaError, self.java.send, producer, topic, noise)
        self.assertEqual(error.code, 13)
        self.assertEqual(
            self.java.send(producer, topic, noise[:-1])["status"], "SEND_OK"
        )

    def test_pull(self) -> None:
        """A pull gives what is there, in order; behind the end it says so."""
        topic, producer = self.topic(1), self.producer()
        for number in range(10):
            tags = "odd" if number % 2 else "even"
            self.java.send(producer, topic, b"%d" % number, tags=tags)
        words = {"group": fresh("G"), "topic": topic, "broker": "broker-a", "queue": 0}

        def pull(offset: int, tags: str = "*") -> Any:
            return self.java("pull", offset=offset, most=32, tags=tags, **words)

        found = pull(3)
        self.assertEqual(found["status"], "FOUND")
        self.assertEqual(
            [body_of(m) for m in found["messages"]], [b"%d" % n for n in range(3, 10)]
        )
        self.assertEqual((found["next"], found["min"], found["max"]), (10, 0, 10))
        odd = pull(0, "odd")
        self.assertEqual(
            [body_of(m) for m in odd["messages"]], [b"1", b"3", b"5", b"7", b"9"]
        )
        self.assertEqual(pull(10)["status"], "NO_NEW_MSG")
        self.assertEqual(pull(99)["status"], "OFFSET_ILLEGAL")
        self.assertEqual(pull(0, "nobody")["status"], "NO_MATCHED_MSG")

    def test_longPoll(self) -> None:
        """A waiting consumer has a new message long before its next poll."""
        topic, producer = self.topic(1), self.producer()
        consumer = self.consumer(topic)
        self.java.send(producer, topic, b"first")
        self.assertEqual(len(self.java.received(consumer, 1)), 1)
        for number in range(9):
            time.sleep(0.2)
            self.java.send(producer, topic, b"%d" % number)
            self.java.received(consumer, 2 + number)
        got = self.java.received(consumer, 10)
        delays = sorted(m["at"] - m["stored"] for m in got[1:])
        self.assertEqual(len(delays), 9)
        self.assertLess(delays[len(delays) // 2], 1000)

    def test_delayLevels(self) -> None:
        """Delayed messages come when their level has passed, not before, with their
        tags and properties, in whatever way they were sent."""
        topic, producer = self.topic(), self.producer()
        consumer = self.consumer(topic, tags="late")
        wanted = {b"none": 0, b"one": 1, b"two": 2, b"oneway": 1, b"async": 1}
        for body, level in wanted.items():
            self.java.send(
                producer,
                topic,
                body,
                mode={b"oneway": "oneway", b"async": "async"}.get(body, "sync"),
                delayLevel=level,
                tags="late",
                properties={"colour": "red"},
            )
        got = {body_of(m): m for m in self.java.received(consumer, len(wanted))}
        self.assertEqual(got.keys(), wanted.keys())
        for body, level in wanted.items():
            waited = got[body]["stored"] - got[body]["born"]
            least = {0: 0, 1: 1000, 2: 5000}[level]
            self.assertTrue(least <= waited < least + LATE_MS, f"{body!r}: {waited}")
            self.assertEqual(got[body]["properties"]["colour"], "red")
            self.assertEqual(got[body]["properties"].get("DELAY", "0"), str(level))
        self.assertEqual(got[b"two"]["properties"]["REAL_TOPIC"], topic)

    def test_transactions(self) -> None:
        """What is committed arrives once, at once or when the producer was asked; what
        is rolled back never does; and it comes as what its producer sent."""
        topic, name = self.topic(), fresh("P")
        self.java("transactionalProducer", name=name, group=name)
        self.addCleanup(self.java, "stop", name=name)
        consumer = self.consumer(topic)
        ends = ("COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW")
        kinds = [(a, b) for a in ends for b in ends if a == "UNKNOW" or b == "UNKNOW"]
        for local, checked in kinds:
            body = encoded(f"{local} {checked}".encode())
            properties = {"local": local, "checked": checked}
            words = {"body": body, "keys": "k", "tags": "t", "properties": properties}
            answer = self.java("sendInTransaction", name=name, topic=topic, **words)
            self.assertEqual(answer["status"], "SEND_OK")
            self.assertEqual(answer["transactionId"], answer["msgId"])
            self.assertEqual(answer["local"], local)
        got = self.java.received(consumer, 2)
        time.sleep(6)
        got = self.java.received(consumer, 0)
        self.assertEqual(
            sorted(body_of(message) for message in got),
            [b"COMMIT_MESSAGE UNKNOW", b"UNKNOW COMMIT_MESSAGE"],
        )
        for message in got:
            self.assertEqual((message["keys"], message["tags"]), ("k", "t"))

    def test_batchQueues(self) -> None:
        """A topic with batch queues takes batches and messages that are alone, in
        whatever way they are sent; consumers get each message as it was, in order."""
        topic, name = fresh("B"), self.producer(compressOver=1000)
        ask = Asker(self.cluster)
        self.addCleanup(ask.close)
        ask.create(topic, "+queue.type=BatchCQ")
        committing = fresh("P")
        self.java("transactionalProducer", name=committing, group=committing)
        self.addCleanup(self.java, "stop", name=committing)
        everything = self.consumer(topic, orderly=True)
        some = self.consumer(topic, tags="A")
        self.java.send(name, topic, b"alone", tags="A")
        self.java.send(name, topic, b"large " * 1000, tags="B")
        batch = [{"body": encoded(b"%d" % n), "tags": "AB"[n % 2]} for n in range(4)]
        self.java("sendBatch", name=name, topic=topic, messages=batch)
        words = {"body": encoded(b"committed"), "properties": {"local": COMMITTED}}
        self.java("sendInTransaction", name=committing, topic=topic, tags="A", **words)
        self.assertEqual(len(self.java.received(everything, 7)), 7)
        self.java.send(name, topic, b"late", tags="A", delayLevel=1)
        got = self.java.received(everything, 8)
        wanted = [b"alone", b"large " * 1000, b"0", b"1", b"2", b"3", b"committed"]
        self.assertEqual([body_of(message) for message in got], [*wanted, b"late"])
        self.assertEqual([message["offset"] for message in got], [*range(8)])
        tagged = {body_of(message) for message in self.java.received(some, 5)}
        self.assertEqual(tagged, {b"alone", b"0", b"2", b"committed", b"late"})

    def test_pushWithTags(self) -> None:
        """A subscription to two tags gets those two and no other."""
        topic, producer = self.topic(), self.producer()
        consumer = self.consumer(topic, tags="red || blue")
        for number in range(30):
            tags = ("red", "green", "blue")[number % 3]
            self.java.send(producer, topic, b"%d" % number, tags=tags)
        got = self.java.received(consumer, 20)
        self.assertEqual(
            {body_of(m) for m in got}, {b"%d" % n for n in range(30) if n % 3 != 1}
        )

    def test_sql(self) -> None:
        """A subscription by SQL92 gets what it wants and nothing else, before it began
        and while it waits; one that makes no sense is refused with what is wrong."""
        topic, producer = self.topic(2), self.producer()

        def send(*numbers: int) -> None:
            for number in numbers:
                self.java.send(
                    producer,
                    topic,
                    b"%d" % number,
                    tags="S",
                    properties={"a": str(number), "c": "odd" if number % 2 else "even"},
                )

        send(*range(20))
        sql = "a BETWEEN 5 AND 100 AND c IN ('even') AND TAGS IS NOT NULL"
        consumer = self.consumer(topic, sql=sql)
        self.java.received(consumer, 7)
        send(*range(50, 60), *range(150, 160))
        got = self.java.received(consumer, 12)
        wanted = {*range(6, 20, 2), *range(50, 60, 2)}
        self.assertEqual({body_of(m) for m in got}, {b"%d" % n for n in wanted})
        error = self.assertRaises(
            JavaError,
            lambda: self.java(
                "consumer", name="x", group=fresh("G"), topic=topic, sql="a >"
            ),
        )
        self.assertIn("the end at 3", error.text)

    def test_clusterShareAndRebalance(self) -> None:
        """Two members share the queues; when one leaves, the other has them all."""
        topic, producer, group = self.topic(4), self.producer(), fresh("G")
        one, two = self.consumer(topic, group), self.consumer(topic, group)
        mine = {f"{topic}/{n}" for n in range(4)}

        def queues(name: str) -> set[str]:
            return set(self.java("queues", name=name)) & mine

        self.assertTrue(
            until(
                lambda: (
                    len(queues(one)) == len(queues(two)) == 2
                    and queues(one) | queues(two) == mine
                )
            ),
            self.cluster.logs()[-2000:],
        )
        for number in range(40):
            self.java.send(producer, topic, b"%d" % number)
        until(
            lambda: (
                len(self.java.received(one, 0)) + len(self.java.received(two, 0)) >= 40
            )
        )
        first, second = self.java.received(one, 0), self.java.received(two, 0)
        self.assertEqual(len(first) + len(second), 40)
        self.assertTrue(first)
        self.assertTrue(second)
        self.java("stop", name=two)
        self.assertTrue(until(lambda: queues(one) == mine))

    def test_orderly(self) -> None:
        """Members that consume in order have each message of a queue once and in its
        place, though one is refused at first, and though a member leaves."""
        topic, producer, group = self.topic(4), self.producer(), fresh("G")
        name, words = "broker-a", {"orderly": True, "suspendOnceAt": encoded(b"1/5")}
        one = self.consumer(topic, group, **words)
        two = self.consumer(topic, group, **words)
        mine = {f"{topic}/{n}" for n in range(4)}

        def queues(name: str) -> set[str]:
            return set(self.java("queues", name=name)) & mine

        def send(first: int, last: int) -> None:
            for number in range(first, last):
                for queue in range(4):
                    body = b"%d/%d" % (queue, number)
                    self.java.send(producer, topic, body, broker=name, queue=queue)

        def got() -> dict[int, list[bytes]]:
            found: dict[int, list[bytes]] = {}
            for name in (two, one):
                for message in self.java.received(name, 0):
                    found.setdefault(message["queue"], []).append(body_of(message))
            return found

        def wanted(last: int) -> dict[int, list[bytes]]:
            return {q: [b"%d/%d" % (q, n) for n in range(last)] for q in range(4)}

        self.assertTrue(until(lambda: len(queues(one)) == len(queues(two)) == 2))
        send(0, 20)
        until(lambda: sum(map(len, got().values())) >= 80)
        self.assertEqual(got(), wanted(20))
        self.java("stop", name=two)
        self.assertTrue(until(lambda: queues(one) == mine))
        send(20, 25)
        until(lambda: sum(map(len, got().values())) >= 100)
        self.assertEqual(got(), wanted(25))

    def test_requestAndReply(self) -> None:
        """Who asks gets the reply, a short one and one that is sent compressed."""
        topic, asker = self.topic(1), self.producer()
        replier = self.producer(compressOver=1000)
        self.consumer(topic, replyBy=replier, replyTimes=3)
        words = {"name": asker, "topic": topic, "timeoutMs": 60000}
        for body in (b"ping ", b"a long question " * 200):
            reply = self.java("request", body=encoded(body), **words)
            self.assertEqual(body_of(reply), body * 3)
            self.assertEqual(reply["properties"]["MSG_TYPE"], "reply")

    def test_requestAndReplyWithPython(self) -> None:
        """Either side may be ours."""
        topic, other = self.topic(1), self.topic(1)
        replier = self.producer(compressOver=1000)
        self.consumer(topic, replyBy=replier, replyTimes=3)
        asker = self.producer()

        def answer(messages: MessageStream) -> None:
            message = messages.next(PATIENCE)
            assert message is not None
            message.reply(message.body * 2, tag="re", properties={"colour": "red"})
            message.ack()

        with connect(self.cluster.names) as mq, ThreadPoolExecutor() as pool:
            for text in ("ping ", "a long question " * 200):
                reply = mq.request(topic, text, timeout=60.0)
                self.assertEqual(reply.text, text * 3)
            with mq.consumer(other, fresh("G"), start="earliest") as messages:
                for body in (b"ping ", b"a long question " * 200):
                    answering = pool.submit(answer, messages)
                    words = {"name": asker, "topic": other, "timeoutMs": 60000}
                    found = self.java("request", body=encoded(body), **words)
                    answering.result()
                    self.assertEqual(body_of(found), body * 2)
                    self.assertEqual(found["properties"]["TAGS"], "re")
                    self.assertEqual(found["properties"]["colour"], "red")

    def test_broadcast(self) -> None:
        """Each member of a broadcasting group gets every message."""
        topic, producer, group = self.topic(), self.producer(), fresh("G")
        members = [self.consumer(topic, group, model="BROADCASTING") for _ in range(2)]
        time.sleep(1)
        for number in range(12):
            self.java.send(producer, topic, b"%d" % number)
        for member in members:
            got = self.java.received(member, 12)
            self.assertEqual(
                sorted(body_of(m) for m in got), sorted(b"%d" % n for n in range(12))
            )

    def test_topicLifeCycle(self) -> None:
        """A deleted topic has no route; made again, it starts at offset 0."""
        topic, producer = self.topic(1), self.producer(retries=0)
        self.assertEqual(self.java.send(producer, topic, b"old")["offset"], 0)
        self.java("deleteTopic", topic=topic, address=self.cluster.address)
        words = {"group": fresh("G"), "topic": topic, "broker": "broker-a", "queue": 0}
        error = self.assertRaises(
            JavaError,
            lambda: self.java("pull", offset=0, most=32, tags="*", **words),
        )
        self.assertIn("not exist", error.text)
        self.java("createTopic", topic=topic, queues=1, address=self.cluster.address)
        self.assertEqual(self.java.send(producer, topic, b"new")["offset"], 0)


class SendAndReceive49(SendAndReceive):
    """The same with the oldest client."""

    version = "4.9.8"


class BrokerComesAndGoes(SynchronousTestCase):
    """Clients outlive brokers."""

    def test_clientBeforeBroker(self) -> None:
        """A consumer that is there first gets all once there is a broker."""
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        cluster.namesrv.start()
        java = JavaClient("5.3.3", cluster.names, cluster.folder)
        self.addCleanup(java.stop)
        topic = fresh("T")
        java("consumer", name="c", group=fresh("G"), topic=topic)
        java("producer", name="p", group="P")
        self.assertRaises(JavaError, java.send, "p", topic, b"too early")
        cluster.broker.start()

        def sent() -> bool:
            try:
                return bool(java.send("p", topic, b"hello")["status"] == "SEND_OK")
            except JavaError:
                return False

        self.assertTrue(until(sent), cluster.logs()[-2000:])
        self.assertEqual([body_of(m) for m in java.received("c", 1)], [b"hello"])

    def test_restartUnderClients(self) -> None:
        """Broker stopped and killed under them: clients go on, nothing is lost."""
        cluster = Cluster().start()
        self.addCleanup(cluster.stop)
        java = JavaClient("4.9.8", cluster.names, cluster.folder)
        self.addCleanup(java.stop)
        topic = fresh("T")
        java("createTopic", topic=topic, queues=2, address=cluster.address)
        java("producer", name="p", group="P", retries=2)
        java("consumer", name="c", group=fresh("G"), topic=topic)
        acknowledged = set()

        def send(count: int) -> None:
            done = 0
            end = time.monotonic() + PATIENCE
            while done < count and time.monotonic() < end:
                body = b"%d" % random.getrandbits(60)
                try:
                    java.send("p", topic, body)
                except JavaError:
                    time.sleep(0.2)
                    continue
                acknowledged.add(body)
                done += 1
            self.assertEqual(done, count, cluster.logs()[-2000:])

        send(50)
        for how in (15, 9):
            cluster.broker.stop(how)
            cluster.broker.start()
            send(50)

        def got() -> set[bytes]:
            return {body_of(m) for m in java.received("c", 0)}

        until(lambda: acknowledged <= got())
        self.assertEqual(acknowledged - got(), set())
