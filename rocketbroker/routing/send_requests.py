# -*- test-case-name: tests.routing.test_send_requests -*-
"""Requests that send messages, and what their answers say.

A request is made once and may go to any queue of its topic: C{ext_for} adds the two
fields that name the queue. C{docs/facts/client.md} 4.5, 8, 10 and 11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, final

import attrs

from rocketbroker.errors import MessageIllegal, error_of_response
from rocketbroker.records import batches, compression, names, sysflags
from rocketbroker.records.outgoing import MAX_BODY_BYTES, Message, check_topic
from rocketbroker.records.properties import (
    DELAY,
    INSTANCE_ID,
    MAX_RECONSUME_TIMES,
    MESSAGE_TYPE,
    MSG_REGION,
    RECONSUME_TIME,
    TIMER_DELAY_MS,
    TIMER_DELIVER_MS,
    TRACE_SWITCH,
    TRANSACTION_PREPARED,
)
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.answers import field, number
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command

#: Answers after which another try, on another broker, may help; 501: a queue of a
#: static topic has moved.
RETRY_CODES: Final = frozenset({17, 14, 1, 2, 16, 204, 205, 501, 1500})

#: Answers that mean the message is stored.
STORED_CODES: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
    }
)

#: The type of a message that answers another one.
REPLY: Final = "reply"

#: The region of brokers that tell none.
DEFAULT_REGION: Final = "DefaultRegion"

#: Properties of messages that are delivered later.
DELAYS: Final = (DELAY, TIMER_DELAY_MS, TIMER_DELIVER_MS)


class SendResult(NamedTuple):
    """The result of a send, of one message or of a batch.

    @ivar status: 0; or 10, 11, 12: stored, but not as safely as the broker is set up
        to make it (not on the disk in time; no slave; not on a slave in time).
    @ivar message_ids: the unique key of each message.
    @ivar offset_ids: the offset id of each message, as far as the broker tells.
    @ivar queue: where it went.
    @ivar queue_offset: of the first message.
    @ivar transaction_id: of a half message, where the broker gives one.
    @ivar recall_handle: takes a message for later back, where the broker gives one.
    @ivar region: the region of the broker.
    @ivar traced: whether the broker wants the send traced.
    """

    status: int
    message_ids: tuple[str, ...]
    offset_ids: tuple[str, ...]
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    recall_handle: str | None = None
    region: str = DEFAULT_REGION
    traced: bool = True

    @property
    def message_id(self) -> str:
        """The unique key of the first message."""
        return self.message_ids[0]


@attrs.frozen
class SendRequest:
    """One send, ready to go to any queue of its topic.

    @ivar message_ids: the unique keys of its messages.
    """

    topic: str
    code: int
    ext: dict[str, str]
    body: bytes
    message_ids: tuple[str, ...]

    def ext_for(self, queue: MessageQueue) -> dict[str, str]:
        """The fields of the request, when it goes to this queue."""
        return {**self.ext, "e": str(queue.queue_id), "n": queue.broker}

    def result(self, queue: MessageQueue, answer: Command) -> SendResult:
        """What the answer of the broker says.

        @raise BrokerError: the messages are not stored.
        @raise RemoteProtocolError: it is no such answer.
        """
        if answer.code not in STORED_CODES:
            raise error_of_response(answer.code, answer.remark)
        message_id = field(answer, "msgId")
        ext = answer.ext or {}
        return SendResult(
            answer.code,
            self.message_ids,
            tuple(message_id.split(",")),
            MessageQueue(queue.topic, queue.broker, number(answer, "queueId")),
            number(answer, "queueOffset"),
            ext.get("transactionId"),
            ext.get("recallHandle"),
            ext.get(MSG_REGION, DEFAULT_REGION),
            ext.get(TRACE_SWITCH) != "false",
        )


@final
class SendRequests:
    """Makes requests in the name of a group.

    @ivar make_key: a new unique key.
    """

    def __init__(
        self,
        group: str,
        make_key: Callable[[], str],
        wall_ms: Callable[[], int],
        compress_over: int = 4096,
        kind: int = compression.ZLIB,
        level: int = compression.DEFAULT_LEVEL,
        max_body_bytes: int = MAX_BODY_BYTES,
        namespace: str = "",
        unit_mode: bool = False,
    ) -> None:
        """
        @param compress_over: bodies of this many bytes are compressed.
        @param kind: how; see L{compression}.
        @param max_body_bytes: longer bodies are refused.
        @param namespace: in which the topics are, empty for none.
        @param unit_mode: brokers mark topics of which this is said.
        """
        self.make_key = make_key
        self._group = group
        self._wall_ms = wall_ms
        self._compress_over = compress_over
        self._kind = kind
        self._level = level
        self._max_body_bytes = max_body_bytes
        self._namespace = namespace
        self._instance = f"{INSTANCE_ID}\x01{namespace}\x02" if namespace else ""
        self._unit_mode = "true" if unit_mode else "false"

    def single(self, message: Message) -> SendRequest:
        """A request with one message."""
        self.check(message)
        key = self.make_key()
        sys_flag = 0
        body = message.body
        if len(body) >= self._compress_over:
            body = compression.compress(body, self._kind, self._level)
            sys_flag = sysflags.with_compression(0, self._kind)
        if message.properties.get(TRANSACTION_PREPARED) == "true":
            sys_flag |= sysflags.TRANSACTION_PREPARED
        text = message.property_bytes(key).decode("utf-8")
        if self._instance and INSTANCE_ID not in message.properties:
            text += self._instance
        is_reply = message.properties.get(MESSAGE_TYPE) == REPLY
        topic = message.topic  # that of replies is the cluster's
        if not is_reply:
            topic = self._inside(topic)
        ext = self._ext(topic, sys_flag, message.flag, text)
        if names.is_retry_topic(topic):
            ext["j"] = message.properties.get(RECONSUME_TIME, "0")
            ext["l"] = message.properties.get(MAX_RECONSUME_TIMES, "16")
        code = RequestCode.SEND_MESSAGE_V2
        if is_reply:
            code = RequestCode.SEND_REPLY_MESSAGE_V2
        return SendRequest(topic, code, ext, body, (key,))

    def check(self, message: Message) -> None:
        """Refuse what cannot be sent.

        @raise MessageIllegal: it cannot.
        """
        check_topic(self._inside(message.topic))
        if not message.body:
            raise MessageIllegal("a message without a body")
        if len(message.body) > self._max_body_bytes:
            raise MessageIllegal(
                f"a body of {len(message.body)} bytes, at most {self._max_body_bytes}"
            )

    def _inside(self, topic: str) -> str:
        """A topic as brokers know it."""
        if not self._namespace:
            return topic
        return names.in_namespace(self._namespace, topic)

    def _ext(self, topic: str, sys_flag: int, flag: int, text: str) -> dict[str, str]:
        """The fields of SendMessageRequestHeaderV2 that do not depend on the queue.

        Written down here because a typed header costs more than all else of a send.
        """
        return {
            "a": self._group,
            "b": topic,
            "c": names.AUTO_CREATE_TOPIC,
            "d": "4",
            "f": str(sys_flag),
            "g": str(self._wall_ms()),
            "h": str(flag),
            "i": text,
            "j": "0",
            "k": self._unit_mode,
            "m": "false",
        }

    def batch(self, first: Message, parts: list[bytes], keys: list[str]) -> SendRequest:
        """A request with several messages.

        @param first: any one of them.
        @param parts: each as L{batches.encode_part} gives it.
        """
        # The properties of the request are added to each record, where they count
        # more than its own: a unique key here would replace those of all messages.
        text = "" if _waits(first) else "WAIT\x01false\x02"
        topic = self._inside(first.topic)
        ext = self._ext(topic, 0, 0, text + self._instance)
        ext["m"] = "true"
        body = b"".join(parts)
        return SendRequest(
            topic, RequestCode.SEND_BATCH_MESSAGE, ext, body, tuple(keys)
        )


@final
class OpenBatch:
    """Messages of one topic that go in one request, as long as more may come.

    @ivar first: the first of them, None for none.
    """

    def __init__(self, requests: SendRequests) -> None:
        self._requests = requests
        self.first: Message | None = None
        self._parts: list[bytes] = []
        self._keys: list[str] = []
        self._size = 0

    def take(self, message: Message, most: int) -> SendRequest | None:
        """Add a message.

        @param most: how many bytes a batch may have.
        @return: a request with those before it, if it does not go with them.
        @raise MessageIllegal: it cannot be sent in a batch.
        """
        requests = self._requests
        requests.check(message)
        if names.is_retry_topic(message.topic):
            raise MessageIllegal("a batch cannot go to a retry topic")
        key = requests.make_key()
        part = batches.encode_part(
            message.flag, message.body, message.property_bytes(key)
        )
        request = None
        first = self.first
        if first is not None and (
            self._size + len(part) > most or not _alike(first, message)
        ):
            request = self.close()
        if self.first is None:
            self.first = message
        self._parts.append(part)
        self._keys.append(key)
        self._size += len(part)
        return request

    def close(self) -> SendRequest | None:
        """A request with all of them, None for none; one alone goes as it is."""
        first, parts, keys = self.first, self._parts, self._keys
        if first is None:
            return None
        self.first, self._parts, self._keys, self._size = None, [], [], 0
        if len(parts) == 1:
            return self._requests.single(first)
        return self._requests.batch(first, parts, keys)


def _waits(message: Message) -> bool:
    return message.properties["WAIT"] == "true"


def _alike(first: Message, second: Message) -> bool:
    """Whether two messages may go in one batch; a delayed one goes alone."""
    delayed = _delayed(first) or _delayed(second)
    return not delayed and _waits(first) == _waits(second)


def _delayed(message: Message) -> bool:
    return any(name in message.properties for name in DELAYS)
