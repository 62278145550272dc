"""Namespaces, of both kinds, and unit mode."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.local_offsets import FileOffsets
from rocketbroker.client.namespace import namespace_of
from rocketbroker.client.received import MessageView
from rocketbroker.client.settings import ClientSettings
from rocketbroker.errors import ConfigurationError
from rocketbroker.records import record
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.testing.puppet_cluster import HOST, refuse
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from tests.client.cluster import ClientCluster
from tests.client.diary import Diary

TOPIC = "INST%T"


def fields(cluster: ClientCluster, code: int, name: str) -> set[str | None]:
    """The values of a field of all requests of a code."""
    requests = [one for _, one in cluster.runtime.requests if one.code == code]
    return {(one.ext or {}).get(name) for one in requests}


def namespaced(**settings: Any) -> ClientCluster:
    """A broker with a topic of a namespace, and clients of that namespace."""
    cluster = ClientCluster("b1", **{"namespace": "INST", **settings})
    cluster.cluster.topics[TOPIC] = {"b1": 2}
    return cluster


class NameTests(SynchronousTestCase):
    """Where a namespace comes from."""

    def test_addressOfAnInstanceSaysTheNamespace(self) -> None:
        """With or without a scheme; other addresses say none."""
        self.assertEqual(namespace_of(["MQ_INST_1_a.mq.org:80"]), "MQ_INST_1_a")
        self.assertEqual(namespace_of(["tcp://MQ_INST_1_a.mq.org:80"]), "MQ_INST_1_a")
        for other in ("10.0.0.1:9876", "MQ_INST_1.org:80", "x.MQ_INST_1_a.org:80"):
            self.assertEqual(namespace_of([other]), "")

    def test_givenNamespaceCountsMoreThanTheAddress(self) -> None:
        """Also if it is given as none."""
        for given, found in ((None, "MQ_INST_1_a"), ("", ""), ("X", "X")):
            servers = ("MQ_INST_1_a.mq.org:80",)
            cluster = ClientCluster(name_servers=servers, namespace=given)
            self.assertEqual(cluster.instance().namespace.name, found)

    def test_namespaceWithOtherCharactersIsRefused(self) -> None:
        """It is to be found again in names."""
        for wrong in ("a%b", "a b", 5):
            with self.assertRaises(ConfigurationError):
                ClientSettings(namespace=wrong)  # type: ignore[arg-type]


class SendTests(SynchronousTestCase):
    """Producers of a namespace."""

    def test_messageGoesToTheTopicOfTheNamespace(self) -> None:
        """With the namespace as a property; the result has the name as it was given."""
        cluster = namespaced()
        session = cluster.session(group="P")
        result = cluster.runtime.finish(session.send("T", "hello"))
        self.assertEqual(result.queue.topic, "T")
        (stored,) = cluster.broker().stored(TOPIC)
        self.assertEqual(stored.properties["INSTANCE_ID"], "INST")
        self.assertEqual(fields(cluster, RequestCode.SEND_MESSAGE_V2, "a"), {"INST%P"})

    def test_queueOfAResultCanBeGivenAgain(self) -> None:
        """And a name with the namespace is the same topic."""
        cluster = namespaced()
        session = cluster.session()
        first = cluster.runtime.finish(session.send(TOPIC, "a"))
        again = cluster.runtime.finish(session.send("T", "b", queue=first.queue))
        self.assertEqual(again.queue, first.queue)
        self.assertEqual(len(cluster.broker().stored(TOPIC)), 2)

    def test_batchGoesThereToo(self) -> None:
        """The request has the property, which the broker gives to each message."""
        cluster = namespaced()
        session = cluster.session()
        both = [Message("T", "a"), Message("T", "b")]
        cluster.runtime.finish(session.send_batch(both))
        code = RequestCode.SEND_BATCH_MESSAGE
        self.assertEqual(fields(cluster, code, "b"), {TOPIC})
        self.assertEqual(fields(cluster, code, "i"), {"INSTANCE_ID\x01INST\x02"})

    def test_requestAndReplyPass(self) -> None:
        """The question by the namespace's topic, the reply by the cluster's own."""
        cluster = namespaced()
        cluster.cluster.topics["c_REPLY_TOPIC"] = {"b1": 1}
        consumer = cluster.started()
        asking = cluster.runtime.start(cluster.session().request("T", "ping"))
        asked = cluster.take(consumer)
        cluster.runtime.finish(asked.reply("pong"))
        self.assertEqual((asked.topic, asking.value().text), ("T", "pong"))
        code = RequestCode.SEND_REPLY_MESSAGE_V2
        self.assertEqual(fields(cluster, code, "b"), {"c_REPLY_TOPIC"})

    def test_messagesAreFoundAndRecalledByTheUsersTopic(self) -> None:
        """What is found has it, too."""
        cluster = namespaced()
        session = cluster.session()
        cluster.runtime.finish(session.send("T", "a", keys=["k"]))
        (found,) = cluster.runtime.finish(session.find("T", key="k"))
        self.assertEqual((found.topic, found.queue.topic), ("T", "T"))
        later = cluster.runtime.finish(session.send("T", "b", delay=60))
        assert later.recall_handle is not None
        cluster.runtime.finish(session.recall("T", later.recall_handle))
        self.assertEqual(cluster.broker().recalled, [later.recall_handle])
        code = RequestCode.RECALL_MESSAGE
        self.assertEqual(fields(cluster, code, "topic"), {TOPIC})

    def test_observersAreToldTheUsersNames(self) -> None:
        """Of what is sent, read, and done in a transaction."""
        diary = Diary()
        cluster = namespaced(observers=[diary])
        session = cluster.session(group="P")
        session.check("T")(lambda message: True)
        cluster.runtime.finish(session.send("T", "a"))
        consumer = cluster.started()
        cluster.runtime.finish(cluster.take(consumer).ack())
        begun = cluster.runtime.finish(session.transaction("T", "half"))
        cluster.runtime.finish(begun.commit())
        self.assertEqual(
            {(one.group, one.message.topic) for one in diary.sends}, {("P", "T")}
        )
        self.assertEqual([(one.group, one.topic) for one in diary.ends], [("P", "T")])
        (one,) = diary.handled
        self.assertEqual((one.group, one.topic, one.queue.topic), ("G", "T", "T"))

    def test_checkOfATransactionFindsTheUsersTopic(self) -> None:
        """The half message and its end name the group; the end the user's topic."""
        cluster = namespaced()
        session = cluster.session(group="P")
        asked: list[MessageView] = []
        session.check("T")(asked.append)
        begun = cluster.runtime.finish(session.transaction("T", "half"))
        cluster.runtime.finish(begun.rollback())
        (half,) = cluster.broker().stored(TOPIC)
        self.assertEqual(half.properties["PGROUP"], "INST%P")
        body = record.encode(
            TOPIC.encode(),
            b"half",
            b"PGROUP\x01INST%P\x02UNIQ_KEY\x01k\x02",
            queue_id=0,
            queue_offset=0,
            position=1,
            born_ms=1,
            born_host=HOST,
            store_ms=1,
            store_host=HOST,
        )
        ext = {"tranStateTableOffset": "0", "commitLogOffset": "1", "topic": "half"}
        code = RequestCode.CHECK_TRANSACTION_STATE
        (link,) = cluster.runtime.links_to("b1:10911")
        link.send(Command(code, ext, body, flag=ONEWAY))
        cluster.runtime.settle()
        self.assertEqual([(one.topic, one.queue.topic) for one in asked], [("T", "T")])
        code = RequestCode.END_TRANSACTION
        self.assertEqual(fields(cluster, code, "producerGroup"), {"INST%P"})
        self.assertEqual(fields(cluster, code, "topic"), {"T", "half"})


class ReceiveTests(SynchronousTestCase):
    """Consumers of a namespace."""

    def test_memberReadsTheTopicOfTheNamespace(self) -> None:
        """Broker and files have the names with it; users do not see it."""
        cluster = namespaced()
        consumer = cluster.started()
        cluster.broker().put(TOPIC, 0, b"a")
        message = cluster.take(consumer)
        self.assertEqual(message.topic, "T")
        self.assertEqual(message.queue, MessageQueue("T", "b1", 0))
        self.assertEqual([*cluster.broker().groups], ["INST%G"])
        (data,) = cluster.broker().groups["INST%G"].values()
        wanted = {one.topic for one in data.subscription_data_set}
        self.assertEqual(wanted, {TOPIC, "%RETRY%INST%G"})
        cluster.runtime.finish(message.ack())
        cluster.runtime.finish(consumer.commit())
        self.assertEqual(cluster.broker().offsets["INST%G", TOPIC, 0], 1)

    def test_messageComesAgainUnderItsName(self) -> None:
        """The retry topic is the group's in the namespace."""
        cluster = namespaced()
        consumer = cluster.started()
        cluster.broker().put(TOPIC, 0, b"a")
        cluster.runtime.finish(cluster.take(consumer).retry())
        cluster.runtime.advance(60.0)
        again = cluster.take(consumer)
        self.assertEqual((again.topic, again.attempt), ("T", 2))
        self.assertEqual(again.queue.topic, "%RETRY%G")

    def test_retryThroughTheProducerKeepsTheNames(self) -> None:
        """What the broker does not take back is sent with the topic that it knows."""
        cluster = namespaced()
        consumer = cluster.started()
        cluster.broker().put(TOPIC, 0, b"a", {"INSTANCE_ID": "INST"})
        message = cluster.take(consumer)
        code = RequestCode.CONSUMER_SEND_MSG_BACK
        cluster.broker().faults[code] = [refuse(1)]
        cluster.until(cluster.runtime.start(message.retry()))
        (stored,) = cluster.broker().stored("%RETRY%INST%G")
        self.assertEqual(stored.properties["RETRY_TOPIC"], TOPIC)

    def test_popConsumerReadsTheTopicOfTheNamespace(self) -> None:
        """And acknowledges there."""
        cluster = namespaced()
        session = cluster.session()
        stream = session.consumer("T", "G", mode="pop", start="earliest")
        cluster.runtime.finish(stream.__aenter__())
        cluster.broker().put(TOPIC, 1, b"a")
        cluster.runtime.settle()
        message = cluster.runtime.finish(stream.next())
        assert message is not None
        self.assertEqual((message.topic, message.queue.topic), ("T", "T"))
        cluster.runtime.finish(message.ack())
        self.assertEqual(cluster.broker().acks, {(TOPIC, 1, 0)})

    def test_litePullKnowsTheUsersQueues(self) -> None:
        """It polls, seeks and commits by the names without the namespace."""
        cluster = namespaced()
        session = cluster.session()
        queue = MessageQueue("T", "b1", 0)
        lite = session.lite_pull("G", queues=[queue], start="earliest")
        cluster.runtime.finish(lite.start())
        for body in (b"a", b"b"):
            cluster.broker().put(TOPIC, 0, body)
        cluster.runtime.settle()
        (one, _) = cluster.runtime.finish(lite.poll())
        self.assertEqual((one.topic, one.queue), ("T", queue))
        self.assertEqual(lite.queues, [queue])
        cluster.runtime.finish(lite.commit())
        self.assertEqual(cluster.runtime.finish(lite.committed(queue)), 2)
        cluster.runtime.finish(lite.seek_to_begin(queue))
        self.assertEqual(lite.position(queue), 0)

    def test_broadcastOffsetsStandUnderTheNamespace(self) -> None:
        """The file's folder and its queues have it, as Java's."""
        cluster = namespaced()
        session = cluster.session()
        stream = session.consumer("T", "G", broadcast=True, start="earliest")
        cluster.runtime.finish(stream.__aenter__())
        (me,) = cluster.broker().members("INST%G")
        cluster.broker().put(TOPIC, 0, b"a")
        cluster.runtime.settle()
        message = cluster.runtime.finish(stream.next())
        assert message is not None
        cluster.runtime.finish(message.ack())
        self.assertEqual(set(stream.positions), set(stream.queues))
        self.assertEqual({queue.topic for queue in stream.queues}, {"T"})
        cluster.runtime.finish(stream.close())
        kept = FileOffsets(cluster.disk, f"/home/{me}/INST%G/offsets.json")
        read = cluster.runtime.finish(kept.read(MessageQueue(TOPIC, "b1", 0)))
        self.assertEqual(read, 1)


class QuestionTests(SynchronousTestCase):
    """What is asked of other clients and of brokers."""

    def test_replyComesFromTheNamespace(self) -> None:
        """By the topic of the cluster, which is in none."""
        cluster = namespaced()
        cluster.cluster.topics["c_REPLY_TOPIC"] = {"b1": 1}
        runtime = cluster.runtime
        stream = cluster.session().consumer("T", "G", start="earliest")
        runtime.finish(stream.__aenter__())
        asking = runtime.start(cluster.session().request("T", "ping"))
        runtime.settle()
        message = runtime.finish(stream.next())
        assert message is not None
        runtime.finish(message.reply("pong"))
        self.assertEqual(asking.value().text, "pong")
        code = RequestCode.SEND_REPLY_MESSAGE_V2
        self.assertEqual(fields(cluster, code, "b"), {"c_REPLY_TOPIC"})

    def test_messagesAreFoundAndRecalled(self) -> None:
        """Under the names that users know."""
        cluster = namespaced()
        session = cluster.session()
        sending = session.send("T", "later", keys="k", delay=60)
        result = cluster.runtime.finish(sending)
        for finding in (
            session.find("T", key="k"),
            session.find("T", message_id=result.message_id),
        ):
            (found,) = cluster.runtime.finish(finding)
            self.assertEqual((found.topic, found.queue), ("T", result.queue))
        recalling = session.recall("T", result.recall_handle)
        self.assertEqual(cluster.runtime.finish(recalling), result.message_id)
        self.assertEqual(fields(cluster, RequestCode.RECALL_MESSAGE, "topic"), {TOPIC})


class FieldTests(SynchronousTestCase):
    """What each request says: namespaces of the second kind, and units."""

    def test_secondKindIsAFieldOfEachRequest(self) -> None:
        """Of name servers and brokers, with an answer and without; names stay."""
        cluster = ClientCluster("b1", namespace_v2="N")
        session = cluster.session(group="P")
        cluster.runtime.finish(session.send("T", "a"))
        cluster.runtime.finish(session.send_oneway("T", "b"))
        cluster.runtime.settle()
        self.assertEqual(len(cluster.broker().stored("T")), 2)
        self.assertGreater(len(set(cluster.runtime.codes())), 2)
        for code in set(cluster.runtime.codes()):
            self.assertEqual(fields(cluster, code, "ns"), {"N"})
            self.assertEqual(fields(cluster, code, "nsd"), {"true"})

    def test_unitModeIsSaidOfSendsAndGroups(self) -> None:
        """The name of a unit is a part of the client id."""
        cluster = ClientCluster("b1", unit_mode=True, unit_name="U")
        cluster.runtime.finish(cluster.session().send("T", "a"))
        self.assertEqual(fields(cluster, RequestCode.SEND_MESSAGE_V2, "k"), {"true"})
        consumer = cluster.started()
        ((link, data),) = cluster.broker().groups["G"].items()
        self.assertTrue(data.unit_mode)
        self.assertEqual(cluster.broker().clients[link][-2:], "@U")
        cluster.runtime.finish(consumer.close())
