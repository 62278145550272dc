# -*- test-case-name: tests.broker.send.test_send -*-
"""The hot way of sends: JSON, a queue that was approved before, and no property that
the broker acts on.

It decides with a few substring searches and parses no property that it does not need.
All other requests it leaves to the general way by returning False, so that each rule is
in one place. It knows neither topics nor a store, so that another process can go it,
too: who has it approves queues, and forgets them in time.

Request 10 differs from 310 in the names of its fields only. The compiled reader of
several sends knows those of 310: clients send no other unless they are told to.

C{docs/facts/broker.md} 10.1, 10.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, final

from rocketbroker.broker.appends.send_answers import QueueSends
from rocketbroker.broker.messages.message_types import FIFO
from rocketbroker.broker.messages.outer_batch import Part, split_at_once
from rocketbroker.broker.send.batch_answer import answer_batch
from rocketbroker.broker.send.send_checks import (
    SPECIAL,
    ordinary_tag_code,
    region_of,
    wants_wait,
)
from rocketbroker.codec.build import COMPILED
from rocketbroker.codec.sends import SendReader
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import MessageIllegal
from rocketbroker.records import properties
from rocketbroker.records.sysflags import (
    COMPRESSED,
    COMPRESSION_MASK,
    HOST_MASK,
    MULTI_TAGS,
)
from rocketbroker.remoting.interfaces import HotRun, IConnection, IResponderTable
from rocketbroker.store.interfaces import Draft
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, RESPONSE
from rocketbroker.wire.hot import (
    NOT_READ,
    SendFields,
    SendHeader,
    quoted,
    read_long_send,
    read_send,
    send_answer_start,
)

#: All bits of the system flag but those of compression and of several tags.
_NOT_HOT_BITS: Final = ~(COMPRESSION_MASK | COMPRESSED | MULTI_TAGS)

#: What makes a batch. The typed decoder takes 1 for true, too; RocketMQ does not.
_BATCH: Final = re.compile(rb'"(?:m|batch)":"?true')

#: The sends that go this way, in the order in which they are registered.
CODES: Final = (
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.SEND_MESSAGE,
)


class Room(Protocol):
    """How many sends may be taken."""

    @property
    def room(self) -> int:
        """A turn may bring so many drafts before anybody has to ask."""


class Drafts(Protocol):
    """Takes drafts, and appends those of a turn together."""

    drafts: list[Draft]
    waits: bool

    @property
    def overload(self) -> Room:
        """How many it takes."""

    def is_full(self) -> bool:
        """Whether no other may be taken now."""

    def refuse_draft(
        self, draft: Draft, connection: IConnection | None, opaque: int
    ) -> None:
        """Tell the sender of a draft that was not stored why."""


class ApprovedQueues(Protocol):
    """Where the approved queues are from."""

    @property
    def generation(self) -> int:
        """Differs after each change."""


@final
class HotSends:
    """The responder of ordinary sends, a turn's at once.

    @ivar taken: how many.
    @ivar generation: that of the source when the queues were approved.
    @ivar added: the properties that the broker adds to each message.
    @ivar added_bytes: the same as records have them.
    @ivar run: takes several that came together; None without the compiled codec.
    """

    def __init__(
        self,
        batcher: Drafts,
        source: ApprovedQueues,
        renew: Callable[[], object],
        counter: Callable[[str, int, str], QueueSends],
        check_batch: Callable[[bytes], object],
        unknown: Callable[[str, int], object] | None = None,
    ) -> None:
        """
        @param renew: called before a send after a change of the source; it forgets what
            is not right any more, and sets C{generation}.
        @param counter: the counts of a topic, a queue and a type of message.
        @param check_batch: raises MessageIllegal for the body of a batch that cannot be
            stored.
        @param unknown: called with topic and queue of a send that are not approved.
        """
        self.taken = 0
        self.generation = -1
        self.added: dict[str, str] = {}
        self.run: HotRun | None = self.take_run if COMPILED else None
        self._batcher = batcher
        self._source = source
        self._renew = renew
        self._counter = counter
        self._check_batch = check_batch
        self._unknown = unknown
        self._max_bytes = 0
        self._options: BrokerOptions | None = None
        self._store_host = self._host_text = b""
        self._waits = False
        self.added_bytes = b""
        self._added_after = "\x02", ""
        self._reader = SendReader(self._examine)
        #: What stood behind the last unique key, all of it ordinary, and its tag code:
        #: what one producer sends mostly differs in no more than its keys.
        self._tail = ""
        self._tail_code = 0
        self._ready: dict[str, dict[int, QueueSends]] = {}

    def register(self, table: IResponderTable) -> None:
        """Take sends on a port."""
        table.register_hot(CODES[0], self.take, quick=True, run=self.run)
        table.register_hot(CODES[1], self.take)
        table.register_hot(CODES[2], self.take_long, quick=True)

    def configure(
        self, options: BrokerOptions, max_bytes: int, store_host: bytes
    ) -> None:
        """Obey these settings from now on, and approve all queues anew.

        @param max_bytes: maxMessageSize.
        @param store_host: where the broker is reached, as records have it.
        """
        self._options = options
        self._max_bytes = max_bytes
        self._store_host = store_host
        self._host_text = store_host.hex().upper().encode()
        self._waits = self._batcher.waits
        self.added = {**region_of(options), "CLUSTER": options.broker_cluster_name}
        self.added_bytes = properties.encode(self.added)
        added_text = properties.to_text(self.added)
        #: What follows properties that do not end with their separator, and that do.
        self._added_after = "\x02" + added_text, added_text
        # What was approved is looked at anew, the permission above all.
        self._ready.clear()
        self._reader.configure(self.added_bytes, self._waits)

    def answer_start(self, queue_id: int) -> bytes:
        """The first part of the answers to sends to a queue."""
        options = self._options
        assert options is not None
        return send_answer_start(
            options.region_id, options.trace_on, queue_id, self._store_host
        )

    def approve(self, topic: str, queue_id: int, sends: QueueSends) -> None:
        """Take sends to that queue from now on."""
        self._ready.setdefault(topic, {})[queue_id] = sends
        self._reader.approve(topic, queue_id, sends.queue, sends)

    def approved(self, topic: str, queue_id: int) -> QueueSends | None:
        """The counts of a queue that is approved."""
        return self._ready.get(topic, {}).get(queue_id)

    def topics(self) -> list[str]:
        """The topics that have queues that are approved."""
        return [*self._ready]

    def forget(self, topic: str) -> None:
        """Take sends to that topic no longer."""
        self._ready.pop(topic, None)
        self._reader.forget(topic)

    def take_run(
        self, connection: IConnection, data: bytes, start: int, most: int
    ) -> tuple[int, int]:
        """Take sends that came together, as long as they are ordinary: the compiled
        form of L{take}."""
        if self.generation != self._source.generation:
            self._renew()
        drafts = self._batcher.drafts
        room = self._batcher.overload.room - len(drafts)
        end = self._reader.take(connection, drafts, data, start, most, room)
        self.taken += self._reader.taken
        return self._reader.taken, end

    def _examine(self, own: str) -> tuple[int, bool] | None:
        """Tag code and whether the sender waits, of ordinary properties; else None."""
        head, _, rest = own.partition("UNIQ_KEY\x01")
        code = ordinary_tag_code(own, head, rest.partition("\x02")[2])
        if code is None or "__SHARDINGKEY\x01" in own:
            return None
        return code, wants_wait(own)

    def take_long(self, connection: IConnection, header: bytes, body: bytes) -> bool:
        """The same as L{take}, for request 10."""
        return self.take(connection, header, body, read_long_send)

    def take(
        self,
        connection: IConnection,
        header: bytes,
        body: bytes,
        read: Callable[[bytes], SendHeader] = read_send,
    ) -> bool:
        """Take a send that came as JSON if everything about it is ordinary."""
        try:
            call = read(header)
        except NOT_READ:
            return False
        if call.flag & RESPONSE or not body:
            return False
        if self.generation != self._source.generation:
            self._renew()
        fields = call.extFields
        queues = self._ready.get(fields.b)
        sends = None if queues is None else queues.get(fields.e)
        if sends is None or fields.f & _NOT_HOT_BITS:
            if sends is None and self._unknown is not None:
                self._unknown(fields.b, fields.e)
            return False
        batcher = self._batcher
        drafts = batcher.drafts
        if len(drafts) >= batcher.overload.room and batcher.is_full():
            return False
        if fields.m:
            return self._hot_batch(connection, header, call, body, sends)
        own = fields.i
        head, _, rest = own.partition("UNIQ_KEY\x01")
        unique, _, tail = rest.partition("\x02")
        if not unique or (head and head[-1] != "\x02"):
            return False
        if tail == self._tail and (
            not head
            or ("_" not in head and "DELAY" not in head and "TAGS\x01" not in head)
        ):
            code = self._tail_code
        else:
            found = ordinary_tag_code(own, head, tail)
            if found is None:
                return False
            code = found
            if "__SHARDINGKEY\x01" in own:
                sends = self._counter(fields.b, fields.e, FIFO)
            elif "_" not in tail and "TAGS\x01" not in head:
                self._tail, self._tail_code = tail, code
        key = unique.encode()
        to = None if call.flag & ONEWAY else connection
        self.taken += 1
        drafts.append(
            Draft(
                sends.queue,
                body,
                (own + self._added_after[own[-1] == "\x02"]).encode(),
                fields.h,
                fields.f,
                fields.g,
                connection.peer_host,
                fields.j,
                code,
                (to, call.opaque, key if key.isalnum() else quoted(key), sends),
                None,
                0,
                not self._waits or wants_wait(own),
            )
        )
        return True

    def _hot_batch(
        self,
        connection: IConnection,
        header: bytes,
        call: SendHeader,
        body: bytes,
        sends: QueueSends,
    ) -> bool:
        text = call.extFields.i
        if len(body) > self._max_bytes or SPECIAL.search(text) is not None:
            return False
        if _BATCH.search(header) is None:
            return False
        if "__SHARDINGKEY\x01" in text:
            sends = self._counter(sends.topic, sends.queue.queue_id, FIFO)
        own = text.encode()
        try:
            self._check_batch(body)
            joined = properties.joined(own, self.added_bytes)
            parts = split_at_once(body, joined)
        except MessageIllegal:
            return False
        if parts is None:
            return False
        self.taken += 1
        fields = call.extFields
        unique = properties.find(own, b"UNIQ_KEY")
        answer = partial(
            answer_batch,
            self._batcher.refuse_draft,
            self._host_text,
            None if call.flag & ONEWAY else connection,
            call.opaque,
            None if unique is None else quoted(unique),
            sends,
        )
        self._batcher.drafts.append(
            batch_draft(connection, fields, own, parts, sends, answer)
        )
        return True


def batch_draft(
    connection: IConnection,
    fields: SendFields,
    own: bytes,
    parts: list[Part],
    sends: QueueSends,
    context: object,
) -> Draft:
    """The draft of an outer batch.

    @param own: what all of its messages have as properties.
    """
    return Draft(
        sends.queue,
        b"",
        b"",
        fields.h,
        fields.f & ~HOST_MASK,
        fields.g,
        connection.peer_host,
        fields.j,
        0,
        context,
        parts,
        wait=wants_wait(own.decode("utf-8", "replace")),
    )
