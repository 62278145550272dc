"""Requests that send messages, and what their answers say."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import MessageIllegal, RemoteProtocolError, SystemBusy
from rocketbroker.records import batches, properties
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import OpenBatch, SendRequests, SendResult
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.command import RESPONSE, Command

QUEUE = MessageQueue("T", "b1", 3)


def requests(**more: Any) -> SendRequests:
    """Requests with keys K1, K2."""
    keys = iter(["K1", "K2", "K3"])
    return SendRequests("PG", lambda: next(keys), lambda: 1234, **more)


class SendRequestTests(SynchronousTestCase):
    """What goes out, and what comes back."""

    def test_result(self) -> None:
        """The id of a result is that of its first message."""
        result = SendResult(0, ("a", "b"), ("c", "d"), MessageQueue("T", "b", 0), 5)
        self.assertEqual(result.message_id, "a")

    def test_oneRequestMayGoToAnyQueue(self) -> None:
        """The queue is named by two fields, which are added for each try."""
        request = requests().single(Message("T", "hello", tags="a"))
        ext = request.ext_for(QUEUE)
        self.assertEqual((ext["a"], ext["b"], ext["g"]), ("PG", "T", "1234"))
        self.assertEqual((ext["e"], ext["n"]), ("3", "b1"))
        self.assertNotIn("e", request.ext)
        self.assertEqual(properties.parse(ext["i"])["UNIQ_KEY"], "K1")

    def test_batchKeepsTheKeyOfEachMessage(self) -> None:
        """Messages of one batch have keys of their own; one alone is no batch."""
        batch = OpenBatch(requests())
        for body in ("one", "two"):
            self.assertIsNone(batch.take(Message("T", body), 1000))
        request = batch.close()
        assert request is not None
        self.assertEqual(request.message_ids, ("K1", "K2"))
        bodies = [part.body for part in batches.decode(request.body)]
        self.assertEqual(bodies, [b"one", b"two"])
        self.assertIsNone(batch.close())

    def test_longBodyIsRefusedBeforeItIsSent(self) -> None:
        """Compression or not: what counts is what the user gave."""
        with self.assertRaises(MessageIllegal):
            requests(max_body_bytes=3).single(Message("T", "hello"))

    def test_answerWithoutFieldsIsRefused(self) -> None:
        """An answer that says nothing of the place is no answer of a broker."""
        request = requests().single(Message("T", "hello"))
        with self.assertRaises(RemoteProtocolError):
            request.result(QUEUE, Command(0, {}, flag=RESPONSE))
        with self.assertRaises(SystemBusy):
            request.result(QUEUE, Command(2, flag=RESPONSE, remark="busy"))

    def test_answerTellsHandleAndTransaction(self) -> None:
        """The broker may add an id for a transaction, and a handle to recall it."""
        request = requests().single(Message("T", "hello"))
        ext = {"msgId": "A", "queueId": "3", "queueOffset": "7"}
        more = {"transactionId": "X", "recallHandle": "H"}
        result = request.result(QUEUE, Command(0, {**ext, **more}, flag=RESPONSE))
        self.assertEqual((result.queue, result.queue_offset), (QUEUE, 7))
        self.assertEqual((result.transaction_id, result.recall_handle), ("X", "H"))
