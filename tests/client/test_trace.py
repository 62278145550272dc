"""Message trace in RocketMQ's form."""

from __future__ import annotations

import zlib

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.observers import TransactionEnd
from rocketbroker.client.session import MessageStream
from rocketbroker.client.settings import ClientSettings
from rocketbroker.client.trace import (
    MAX_BODY_BYTES,
    MAX_KEY_CHARACTERS,
    MAX_WAITING,
    MessageTrace,
    TraceRecord,
    trace_messages,
)
from rocketbroker.errors import ConfigurationError, MessageIllegal, NoPermission
from rocketbroker.records.properties import KEYS
from rocketbroker.testing.puppet_cluster import refuse
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster

TRACE = "RMQ_SYS_TRACE_TOPIC"

#: What brokers add to each message.
REGION = {"MSG_REGION": "R", "TRACE_ON": "true"}


class TraceCase(SynchronousTestCase):
    """A session that sends a trace."""

    trace: bool | str = True

    def setUp(self) -> None:
        self.here = ClientCluster(trace=self.trace)
        self.here.cluster.topics[TRACE] = {"b1": 1}
        self.here.cluster.topics["Mine"] = {"b1": 1}
        self.runtime = self.here.runtime
        self.mq = self.here.session(group="P")

    def traced(self, topic: str = TRACE) -> list[list[str]]:
        """The fields of all records that have been sent."""
        stored = self.here.broker().stored(topic)
        texts = [record for one in stored for record in one.body.decode().split("\x02")]
        return [text.split("\x01") for text in texts if text]

    def close(self) -> None:
        """Close the session."""
        self.here.until(self.runtime.start(self.mq.close()))

    def read(self, message: str, **text: str) -> tuple[MessageStream, int]:
        """A consumer that has been given one message, and when."""
        self.here.broker().put("T", 0, b"1", {"UNIQ_KEY": message, **REGION, **text})
        stream = self.mq.consumer("T", "G", start="earliest")
        self.runtime.finish(stream.__aenter__())
        return stream, self.runtime.wall_ms()


class SendTests(TraceCase):
    """What sends leave."""

    def test_sendLeavesARecord(self) -> None:
        """Found by the id and the keys of the message."""
        begin = self.runtime.wall_ms()
        sending = self.mq.send("T", "body", tag="a", keys=["k1", "k2"])
        result = self.runtime.finish(sending)
        self.assertEqual(self.traced(), [])
        self.close()
        ((fields),) = self.traced()
        self.assertEqual(
            fields,
            [
                *("Pub", str(begin), "DefaultRegion", "P", "T", result.message_id, "a"),
                *("k1 k2", f"{result.queue.broker}:10911", "4", "0", "0"),
                *(result.offset_ids[0], "true"),
            ],
        )
        (stored,) = self.here.broker().stored(TRACE)
        self.assertEqual(stored.keys, [result.message_id, "k1", "k2"])

    def test_kindsOfMessages(self) -> None:
        """Half, delayed, ordered; what is not there is the word null."""
        self.mq.check("T")(lambda message: None)
        self.runtime.finish(self.mq.send("T", "1"))
        begun = self.runtime.finish(self.mq.transaction("T", "2"))
        self.runtime.finish(self.mq.send("T", "3", delay_level=3))
        self.runtime.finish(self.mq.send("T", "4", order_key="o"))
        self.runtime.finish(begun.commit())
        self.close()
        records = self.traced()
        kinds = [one[11] for one in records if one[0] == "Pub"]
        self.assertEqual(kinds, ["0", "1", "3", "4"])
        self.assertEqual(records[0][6:8], ["null", "null"])
        key = begun.result.message_id
        ((fields),) = (one for one in records if one[0] == "EndTransaction")
        self.assertEqual(fields[2:8], ["DefaultRegion", "P", "T", key, "null", "null"])
        self.assertEqual(fields[9:], ["2", key, "COMMIT_MESSAGE", "false"])

    def test_recallLeavesARecord(self) -> None:
        """Also one that the broker refuses; not what is no handle."""
        self.here.cluster.topics["T"] = {"b1": 1}
        result = self.runtime.finish(self.mq.send("T", "later", delay=60))
        handle = result.recall_handle
        assert handle is not None
        self.runtime.finish(self.mq.recall("T", handle))
        now = str(self.runtime.wall_ms())
        self.here.broker().faults[RequestCode.RECALL_MESSAGE] = [refuse(13)]
        for wrong in (handle, "no handle"):
            with self.assertRaises(MessageIllegal):
                self.runtime.finish(self.mq.recall("T", wrong))
        self.close()
        begin = ["Recall", now, "DefaultRegion", "P", "T", result.message_id]
        self.assertEqual(self.traced()[1:], [[*begin, "true"], [*begin, "false"]])

    def test_recordsGoWhenThereAreTenOrTimeIsUp(self) -> None:
        """Ten at once, fewer after five seconds."""
        for _ in range(9):
            self.runtime.finish(self.mq.send("T", "1"))
        self.runtime.advance(1.0)
        self.assertEqual(len(self.traced()), 0)
        self.runtime.finish(self.mq.send("T", "1"))
        self.runtime.settle()
        self.assertEqual(len(self.traced()), 10)
        self.runtime.finish(self.mq.send("T", "1"))
        self.runtime.advance(4.5)
        self.assertEqual(len(self.traced()), 10)
        self.runtime.advance(1.0)
        self.assertEqual(len(self.traced()), 11)
        self.close()

    def test_whatIsNotStoredLeavesNothing(self) -> None:
        """Nor the trace itself, nor what the broker does not want traced."""
        for broker in ("b1", "b2"):
            faults = [refuse(16)] * 3
            self.here.broker(broker).faults[RequestCode.SEND_MESSAGE_V2] = faults
        failing = self.runtime.start(self.mq.send("T", "1"))
        with self.assertRaises(NoPermission):
            self.here.until(failing)
        for broker in ("b1", "b2"):
            self.here.broker(broker).faults.clear()
        self.runtime.finish(self.mq.send(TRACE, "no record"))
        self.close()
        self.assertEqual(len(self.here.broker().stored(TRACE)), 1)

    def test_traceThatCannotBeSentDisturbsNothing(self) -> None:
        """It is dropped; the end waits for it no longer than five seconds."""
        self.here.cluster.topics["Mine"] = {"b2": 1}
        self.here.cluster.topics[TRACE] = {"b9": 1}
        for _ in range(12):
            self.runtime.finish(self.mq.send("Mine", "1"))
        begin = self.runtime.monotonic()
        self.close()
        self.assertLess(self.runtime.monotonic() - begin, 6.0)

    def test_childOfAForkSendsItsOwnTrace(self) -> None:
        """What waits is sent by the parent."""
        self.runtime.finish(self.mq.send("T", "parent"))
        self.runtime.fork()
        result = self.runtime.finish(self.mq.send("T", "child"))
        links = [*self.runtime.links]
        self.close()
        self.assertEqual([one[5] for one in self.traced()], [result.message_id])
        self.assertLess(len(self.runtime.links), len(links))

    def test_topicMayBeAnother(self) -> None:
        """A name instead of true."""
        here = ClientCluster(trace="Mine")
        here.cluster.topics["Mine"] = {"b1": 1}
        mq = here.session()
        here.runtime.finish(mq.send("T", "1"))
        here.until(here.runtime.start(mq.close()))
        self.assertEqual(len(here.broker().stored("Mine")), 1)
        for wrong in ("a b", "", 5, None):
            with self.assertRaises(ConfigurationError):
                ClientSettings(trace=wrong)  # type: ignore[arg-type]


class HandlingTests(TraceCase):
    """What the handling of messages leaves."""

    def test_handlingLeavesTwoRecords(self) -> None:
        """Before and after, with an id of their own."""
        stream, begin = self.read("ID", KEYS="k")
        message = self.runtime.finish(stream.next())
        assert message is not None
        self.runtime.advance(2.0)
        self.runtime.finish(message.ack())
        end = self.runtime.wall_ms()
        self.close()
        before, after = self.traced()
        request = before[4]
        self.assertNotEqual(request, "ID")
        self.assertEqual(
            before, ["SubBefore", str(begin), "R", "G", request, "ID", "0", "k"]
        )
        self.assertEqual(
            after,
            ["SubAfter", request, "ID", "2000", "true", "k", "0", str(end), "G"],
        )
        for stored in self.here.broker().stored(TRACE):
            self.assertEqual(stored.keys, ["ID", "k"])

    def test_codesTellWhatHasBecomeOfIt(self) -> None:
        """Sent back, timed out, and what a listener raised."""
        stream, _ = self.read("A")
        message = self.runtime.finish(stream.next())
        assert message is not None
        self.runtime.finish(message.retry())
        self.close()
        self.assertEqual(self.traced()[1][4:7], ["false", "null", "4"])

    def test_errorOfAListenerHasItsCode(self) -> None:
        """It is an exception there."""
        self.here.broker().put("T", 0, b"1", {"UNIQ_KEY": "A", **REGION})

        @self.mq.on("T", group="G", start="earliest")
        def listen(message: object) -> None:
            """Fails."""
            raise KeyError("a fault of the user")

        running = self.runtime.start(self.mq.run())
        with self.assertLogs("rocketbroker.client", "ERROR"):
            self.runtime.advance(1.0)
        self.mq.stop()
        self.here.until(running)
        self.close()
        self.assertEqual(self.traced()[1][4:7], ["false", "null", "2"])

    def test_messageThatIsNotTracedLeavesNothing(self) -> None:
        """Its broker has said so."""
        stream, _ = self.read("A", TRACE_ON="false")
        message = self.runtime.finish(stream.next())
        assert message is not None
        self.runtime.finish(message.ack())
        self.close()
        self.assertEqual(self.traced(), [])


class MessageTests(SynchronousTestCase):
    """L{trace_messages}."""

    def test_messagesHaveOneTopicEach(self) -> None:
        """In the order in which the topics came."""
        records = [TraceRecord(topic, (topic,), "x\x02") for topic in "ABA"]
        found = [one.body for one in trace_messages("T", records)]
        self.assertEqual(found, [b"x\x02x\x02", b"x\x02"])

    def test_bodiesHaveALimit(self) -> None:
        """In bytes, though characters may have several."""
        records = [TraceRecord("A", ("k",), "ü" * 10_000)] * 13
        sizes = [len(one.body) for one in trace_messages("T", records)]
        self.assertEqual(sizes, [120_000, 120_000, 20_000])
        self.assertLessEqual(max(sizes), MAX_BODY_BYTES)

    def test_keysHaveALimit(self) -> None:
        """They have to fit into the properties."""
        records = [TraceRecord("A", (f"{n:04}" * 1000,), "x") for n in range(9)]
        found = [one.properties[KEYS] for one in trace_messages("T", records)]
        self.assertEqual([len(one.split()) for one in found], [4, 4, 1])
        self.assertLessEqual(max(map(len, found)), MAX_KEY_CHARACTERS)

    def test_queueHasALimit(self) -> None:
        """What is beyond it is dropped and counted."""
        here = ClientCluster()
        here.cluster.topics[TRACE] = {"b1": 1}
        trace = MessageTrace(here.runtime, here.settings, TRACE, "P")
        end = TransactionEnd(
            group="P",
            topic="T",
            message_id="ID",
            tag=None,
            keys=None,
            address="b1:10911",
            transaction_id=None,
            committed=None,
            asked=True,
            region="R",
        )
        for _ in range(MAX_WAITING + 5):
            trace.transaction_ended(end)
        self.assertEqual(trace.dropped, 5)
        here.until(here.runtime.start(trace.close()))
        stored = here.broker().stored(TRACE)
        text = b"".join(zlib.decompress(one.body) for one in stored)
        self.assertEqual(text.count(b"UNKNOW\x01true\x02"), MAX_WAITING)
