# -*- test-case-name: tests.blocking.test_client -*-
"""Requests of a client about topics and queues."""

from __future__ import annotations

from typing import Final, final

from rocketbroker.blocking.answers import PASSING, may_pass, number
from rocketbroker.blocking.connections import Connections
from rocketbroker.blocking.routes import MASTER, MessageQueue, Routes
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import (
    BrokerError,
    QueryNotFound,
    TopicNotExist,
    error_of_response,
)
from rocketbroker.records.names import AUTO_CREATE_TOPIC
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.admin import CreateTopicRequestHeader
from rocketbroker.wire.headers.header import Header
from rocketbroker.wire.headers.pull import (
    GetEarliestMsgStoretimeRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    QueryConsumerOffsetRequestHeader,
    SearchOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
    ViewMessageRequestHeader,
)

#: How long a new topic may take to be known to the name servers.
TOPIC_SECONDS: Final = 10.0


@final
class Client:
    """Asks name servers and brokers. No connection is made before the first question.

    Threads may share it; each has connections of its own. It can be pickled: a copy
    makes its own connections.

    @ivar settings: its settings.
    @ivar connections: its connections.
    @ivar routes: its routes.
    """

    def __init__(self, settings: Settings) -> None:
        """
        @raise ConfigurationError: the name servers cannot be addresses.
        """
        self.settings = settings
        self.connections = Connections(settings)
        self.routes = Routes(settings, self.connections)

    def __reduce__(self) -> tuple[object, ...]:
        return Client, (self.settings,)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; the next question opens them again."""
        self.connections.close()

    def queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that can be read, by broker and number.

        @raise TopicNotExist: there is no such topic.
        """
        return list(self.routes.to_read(topic))

    def topics(self) -> list[str]:
        """The names of all topics."""
        return self.routes.topics()

    def ask(self, queue: MessageQueue, code: int, header: Header) -> Command:
        """Ask the master of a physical queue, and again if that may help.

        @return: the successful answer.
        @raise BrokerError: it refused the request.
        @raise ConnectionLost: it could not be reached, as often as it was tried.
        @raise RequestTimeout: it did not answer in time, as often as it was tried.
        """
        ext = {**header.to_ext(), "lo": "false"}
        for left in reversed(range(self.settings.attempts)):
            try:
                return self.ask_server(self.routes.address(queue), code, ext)
            except (*PASSING, BrokerError) as problem:
                if left == 0 or not may_pass(problem):
                    raise
            self.routes.forget(queue.topic)
            self.settings.machine.sleep(self.settings.pause)
        raise AssertionError("unreachable: the last try returns or raises")

    def ask_server(
        self,
        address: str,
        code: int,
        ext: dict[str, str] | None = None,
        body: bytes = b"",
        seconds: float | None = None,
    ) -> Command:
        """Ask a broker or a name server, once: what tools ask.

        @param address: C{host:port}.
        @param ext: the fields of the header.
        @param seconds: how long it may take; unless given, as the settings say.
        @return: the successful answer.
        @raise BrokerError: it refused the request.
        @raise ConnectionLost: it could not be reached, or got lost.
        @raise RequestTimeout: it did not answer in time.
        """
        answer = self.connections.to(address).invoke(
            Command(code, ext, body), seconds or self.settings.seconds
        )
        if answer.code != ResponseCode.SUCCESS:
            raise error_of_response(answer.code, answer.remark)
        return answer

    def min_offset(self, queue: MessageQueue) -> int:
        """The first queue offset that can be read."""
        header = GetMinOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        answer = self.ask(queue, RequestCode.GET_MIN_OFFSET, header)
        return number(answer, "offset")

    def max_offset(self, queue: MessageQueue) -> int:
        """One more than the last queue offset that can be read."""
        header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        answer = self.ask(queue, RequestCode.GET_MAX_OFFSET, header)
        return number(answer, "offset")

    def offset_by_time(self, queue: MessageQueue, ms: int, upper: bool = False) -> int:
        """The offset of the first message stored at C{ms} or later.

        @param upper: of the last one stored at C{ms} or before.
        """
        header = SearchOffsetRequestHeader(
            topic=queue.topic,
            queue_id=queue.queue_id,
            timestamp=ms,
            boundary_type="UPPER" if upper else "LOWER",
        )
        answer = self.ask(queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return number(answer, "offset")

    def earliest_store_time(self, queue: MessageQueue) -> int:
        """When the first message that can be read was stored, in ms; -1 for none."""
        header = GetEarliestMsgStoretimeRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id
        )
        answer = self.ask(queue, RequestCode.GET_EARLIEST_MSG_STORETIME, header)
        return number(answer, "timestamp")

    def committed_offset(self, queue: MessageQueue, group: str) -> int | None:
        """The offset where a group goes on; None if it has none.

        Brokers before 5.0 say 0 for a group that has none in a young queue.
        """
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            set_zero_if_not_found=False,
        )
        try:
            answer = self.ask(queue, RequestCode.QUERY_CONSUMER_OFFSET, header)
        except QueryNotFound:
            return None
        return number(answer, "offset")

    def commit_offset(self, queue: MessageQueue, group: str, offset: int) -> None:
        """Commit the offset where a group goes on."""
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
        )
        self.ask(queue, RequestCode.UPDATE_CONSUMER_OFFSET, header)

    def view(self, address: str, position: int, topic: str = "") -> StoredMessage:
        """The message stored at a physical offset.

        @param address: the broker, as an offset id names it.
        @raise BrokerError: there is none.
        @raise Malformed: what it sent is no message.
        """
        header = ViewMessageRequestHeader(topic=topic, offset=position)
        answer = self.ask_server(
            address, RequestCode.VIEW_MESSAGE_BY_ID, header.to_ext()
        )
        return decode(answer.body)

    def masters(self, cluster: str | None = None) -> dict[str, str]:
        """The addresses of all masters, or of one cluster's, by broker name."""
        info = self.routes.clusters()
        if cluster is None:
            names = set(info.broker_addr_table)
        else:
            names = set(info.cluster_addr_table.get(cluster, ()))
        return {
            name: broker.broker_addrs[MASTER]
            for name, broker in sorted(info.broker_addr_table.items())
            if name in names and MASTER in broker.broker_addrs
        }

    def create_topic(
        self,
        topic: str,
        queues: int = 8,
        perm: int = 6,
        cluster: str | None = None,
        wait: float = TOPIC_SECONDS,
    ) -> None:
        """Create a topic, or change it, on all masters; wait until it can be found.

        @param queues: how many, for reading and for writing, on each broker.
        @param perm: 4 read, 2 write.
        @param cluster: only there.
        @param wait: how many seconds the name servers may take to know it.
        @raise TopicNotExist: they still do not know it, or there is no broker.
        """
        header = CreateTopicRequestHeader(
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=perm,
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
            order=False,
        )
        masters = self.masters(cluster)
        if not masters:
            raise TopicNotExist(f"there is no broker on which to create {topic}")
        for address in masters.values():
            self.ask_server(
                address, RequestCode.UPDATE_AND_CREATE_TOPIC, header.to_ext()
            )
        self.wait_for_topic(topic, set(masters), wait)

    def wait_for_topic(self, topic: str, brokers: set[str], seconds: float) -> None:
        """Wait until the name servers know a topic on these brokers.

        @raise TopicNotExist: they do not within that time.
        """
        machine = self.settings.machine
        deadline = machine.monotonic() + seconds
        while True:
            try:
                view = self.routes.view(topic, refresh=True)
                missing = brokers - {one.broker for one in view.read or view.write}
            except TopicNotExist:
                missing = brokers
            if not missing:
                return
            if machine.monotonic() >= deadline:
                names = ", ".join(sorted(missing))
                raise TopicNotExist(f"the name servers do not know {topic} on {names}")
            machine.sleep(0.1)
