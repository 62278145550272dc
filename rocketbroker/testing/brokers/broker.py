# -*- test-case-name: tests.integration.test_testing -*-
"""The broker as one test sees it.

A test has topics and groups of its own on a broker that it shares with the others, so
that a broker is started once and no test sees what another has sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast, final

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.puller import Puller
from rocketbroker.blocking.settings import Settings
from rocketbroker.client.received import MessageView
from rocketbroker.client.session import message_of
from rocketbroker.records.batches import messages
from rocketbroker.records.names import is_system_group
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.testing.brokers.coroutines import in_thread
from rocketbroker.testing.brokers.process import BrokerProcess, shared
from rocketbroker.testing.brokers.report import report
from rocketbroker.testing.control import (
    BrokerTime,
    Fault,
    add_fault,
    advance,
    clear_faults,
    faults,
)
from rocketbroker.wire import fastjson
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.admin import (
    DeleteSubscriptionGroupRequestHeader,
    DeleteTopicRequestHeader,
)
from rocketbroker.wire.headers.namesrv import DeleteTopicFromNamesrvRequestHeader

P = ParamSpec("P")
T = TypeVar("T")

#: How long an answer may take: machines that test are busy.
SECONDS: Final = 30.0

#: How often it is looked whether a group has consumed, in seconds.
LOOK_SECONDS: Final = 0.01


@final
class _Opened:
    """What a broker has between the beginning and the end of a test.

    @ivar process: the broker's.
    @ivar client: asks it.
    @ivar producer: sends to it.
    @ivar log_start: where its log was when the test began.
    @ivar topics: the names of topics, by what the test calls them, and their queues.
    @ivar groups: the names of groups, likewise.
    @ivar owner: of the faults, which end with it.
    """

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self.client = Client(Settings(process.name_server, seconds=SECONDS))
        self.producer = Producer(self.client)
        self.log_start = process.log_end
        self.topics: dict[str, tuple[str, int]] = {}
        self.groups: dict[str, str] = {}
        self._number = next(process.numbers)
        self.owner = self.name("test")

    def name(self, name: str) -> str:
        """A name that no other test has."""
        return f"{name}-{self._number}"


@final
class Broker:
    """A broker for one test: a context, in which all its methods can be called.

    Behind all with the same settings there is one broker, a process that begins with
    the first of them and ends with this process. Any number of threads may use it. As
    an asynchronous context it is an L{AsyncBroker}, for asyncio and Twisted.

    Topics, groups and faults go with the end of the context. An error that leaves the
    context is given a note: what the broker has logged since its beginning, and what is
    in the topics (L{report}).
    """

    def __init__(self, settings: Mapping[str, str] = {}) -> None:
        """
        @param settings: of a broker: C{{"messageDelayLevel": "1s 2s"}}.
        """
        self._settings = settings
        self._opened: _Opened | None = None

    def __enter__(self) -> Broker:
        self._opened = _Opened(shared(self._settings))
        return self

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        opened = self._open
        try:
            if isinstance(problem, Exception):
                problem.add_note(self.report())
            if opened.process.is_running:
                self.clear_faults()
                topics = [name for name, _ in opened.topics.values()]
                _remove(opened.client, topics, opened.groups.values())
        finally:
            self._opened = None
            opened.client.close()

    async def __aenter__(self) -> AsyncBroker:
        await in_thread(self.__enter__)
        return AsyncBroker(self)

    async def __aexit__(self, kind: object, problem: object, trace: object) -> None:
        await in_thread(self.__exit__, kind, problem, trace)

    @property
    def is_open(self) -> bool:
        """Whether it is inside its block."""
        return self._opened is not None

    @property
    def _open(self) -> _Opened:
        if self._opened is None:
            raise RuntimeError("the broker is used in a block: with Broker() as broker")
        return self._opened

    @property
    def name_server(self) -> str:
        """The address that the program under test is given, C{host:port}."""
        return self._open.process.name_server

    def topic(self, name: str, queues: int = 1) -> str:
        """A topic of this test; the same for the same name.

        @param queues: how many it has.
        @return: its whole name, which no other test has.
        @raise InvalidParameter: it cannot be a name.
        """
        opened = self._open
        topic = opened.name(name)
        if opened.topics.get(name) != (topic, queues):
            opened.client.create_topic(topic, queues)
            opened.topics[name] = (topic, queues)
        return topic

    def group(self, name: str) -> str:
        """A name for a group of this test; the same for the same name.

        The group is made by its first member.
        """
        opened = self._open
        return opened.groups.setdefault(name, opened.name(name))

    def send(
        self,
        topic: str,
        body: bytes | str,
        *,
        tag: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        delay: float | timedelta | None = None,
        at: float | datetime | None = None,
    ) -> SendResult:
        """Send a message and wait until it is stored.

        @param topic: its whole name.
        @param body: a string is sent as UTF-8.
        @param tag: by which readers choose.
        @param keys: under which it can be found; none holds a space.
        @param delay: how long it rests, in seconds.
        @param at: when it is delivered: a C{datetime}, or seconds since 1970.
        @raise MessageIllegal: it cannot be sent.
        """
        return self._open.producer.send(
            message_of(topic, body, tag, keys, properties, 0, delay, at, None)
        )

    def messages(self, topic: str) -> list[MessageView]:
        """All messages that a topic has now, in the order in which they were stored.

        One that rests comes into its topic when its time is over.

        @param topic: its whole name; C{%DLQ%group} has the dead letters of a group.
        @raise TopicNotExist: there is no such topic.
        """
        client = self._open.client
        puller = Puller(client)
        found = []
        for queue in client.queues(topic):
            start, until = client.min_offset(queue), client.max_offset(queue)
            for chunk in puller.read(queue, start, until):
                found += [MessageView(each, queue) for each in messages(chunk.data)]
        return sorted(found, key=lambda message: message.stored.position)

    def consumed(self, topic: str, group: str) -> int:
        """How many messages of a topic a group has behind it.

        That is what its members have committed. A message that failed counts, too: it
        is in the group's retry topic then.

        @raise TopicNotExist: there is no such topic.
        """
        client = self._open.client
        queues = client.queues(topic)
        return sum(client.committed_offset(queue, group) or 0 for queue in queues)

    def wait_consumed(
        self, topic: str, group: str, count: int, timeout: float = 30.0
    ) -> None:
        """Wait until a group has at least so many messages behind it: L{consumed}.

        @raise AssertionError: it has not after C{timeout} seconds.
        @raise TopicNotExist: there is no such topic.
        """
        end = time.monotonic() + timeout
        while (consumed := self.consumed(topic, group)) < count:
            if time.monotonic() > end:
                raise AssertionError(
                    f"{group} has consumed {consumed} of {count} messages of {topic} "
                    f"after {timeout:g} seconds, and {self.lag(topic, group)} are left"
                )
            time.sleep(LOOK_SECONDS)

    def lag(self, topic: str, group: str) -> int:
        """How many messages of a topic a group has still to consume.

        Of a queue in which it has committed nothing that is all of them.

        @raise TopicNotExist: there is no such topic.
        """
        client = self._open.client
        lag = 0
        for queue in client.queues(topic):
            committed = client.committed_offset(queue, group)
            begin = client.min_offset(queue) if committed is None else committed
            lag += client.max_offset(queue) - begin
        return lag

    def advance(
        self, span: str | float | timedelta, keep_clients: bool = False
    ) -> BrokerTime:
        """Move the broker's time forward, for all tests that follow.

        What is due by then has begun when this returns. The clients' clocks do not
        move: C{docs/testing-faults.rst} has what that means.

        @param span: C{"3d"}, C{"1h30m"}, C{"6s"}, seconds, or a C{timedelta}.
        @param keep_clients: connected clients have not been silent for so long. Else
            the broker takes them for gone after two minutes, and they connect anew.
        @return: the time afterwards.
        @raise ConfigurationError: the text is no span of time.
        @raise InvalidParameter: time goes forward only.
        """
        opened = self._open
        return advance(opened.client, opened.process.address, span, keep_clients)

    def fault(
        self,
        action: str,
        topic: str | None = None,
        *,
        group: str | None = None,
        client_id: str | None = None,
        request: str | int | Sequence[str | int] | None = None,
        code: int | None = None,
        remark: str | None = None,
        ms: int | None = None,
        times: int | None = None,
    ) -> int:
        """Let requests fail that fit all that is given, until the end of the test.

        @param action: C{"busy"}, C{"cut"} and so on: see L{add_fault}, which has all
            parameters. Names of topics and groups are whole ones.
        @return: the number of the fault.
        @raise InvalidParameter: there is no such fault; a sentence says why.
        """
        opened = self._open
        return add_fault(
            opened.client,
            opened.process.address,
            action,
            topic=topic,
            group=group,
            client_id=client_id,
            request=request,
            code=code,
            remark=remark,
            ms=ms,
            times=times,
            owner=opened.owner,
        )

    def faults(self, number: int | None = None) -> list[Fault]:
        """The faults of this test, each with its hits, or the one with a number."""
        opened = self._open
        return faults(opened.client, opened.process.address, number, opened.owner)

    def clear_faults(self, number: int | None = None) -> int:
        """Remove the faults of this test, or the one with a number; how many."""
        opened = self._open
        address = opened.process.address
        return clear_faults(opened.client, address, number, opened.owner)

    def reset(self) -> None:
        """Remove all topics and groups, also those that were not made here, and begin
        anew, with other names.

        It is for programs whose names are fixed. Nobody else may use a broker with
        these settings meanwhile.
        """
        client = self._open.client
        topics = set(client.topics()) - _system_topics(client)
        _remove(client, topics, _groups(client))
        client.close()
        self._opened = _Opened(self._open.process)

    def report(self) -> str:
        """What the broker has logged in this test, and what is in its topics."""
        opened = self._open
        log = opened.process.log(opened.log_start)
        topics = [name for name, _ in opened.topics.values()]
        return report(log, topics, self.messages)


def _system_topics(client: Client) -> set[str]:
    """The topics that brokers do not give away."""
    answers = _ask_all(client, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
    return {str(name) for answer in answers for name in answer["topicList"]}


def _groups(client: Client) -> set[str]:
    """All groups but the system's."""
    answers = _ask_all(client, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    found = {name for answer in answers for name in answer["subscriptionGroupTable"]}
    return {name for name in found if not is_system_group(name)}


def _ask_all(client: Client, code: int) -> list[dict[str, Any]]:
    """Ask each broker; what they answer."""
    answers = [client.ask_server(each, code) for each in client.masters().values()]
    return [cast("dict[str, Any]", fastjson.loads(answer.body)) for answer in answers]


def _remove(client: Client, topics: Iterable[str], groups: Iterable[str]) -> None:
    """Remove topics with their messages, and groups with their offsets."""
    for group in groups:
        ext = DeleteSubscriptionGroupRequestHeader(
            group_name=group, clean_offset=True
        ).to_ext()
        for address in client.masters().values():
            client.ask_server(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, ext)
    for topic in topics:
        ext = DeleteTopicRequestHeader(topic=topic).to_ext()
        for address in client.masters().values():
            client.ask_server(address, RequestCode.DELETE_TOPIC_IN_BROKER, ext)
        ext = DeleteTopicFromNamesrvRequestHeader(topic=topic).to_ext()
        client.routes.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, ext)


def _awaited(
    method: Callable[Concatenate[Broker, P], T],
) -> Callable[Concatenate[AsyncBroker, P], Coroutine[Any, Any, T]]:
    """A method of a broker, called in a thread."""

    @wraps(method)
    async def call(self: AsyncBroker, /, *args: P.args, **options: P.kwargs) -> T:
        return await in_thread(method, self.broker, *args, **options)

    return call


@final
class AsyncBroker:
    """The broker of a test that is a coroutine: L{Broker} with methods to be awaited.

    They wait in threads, so that the program under test goes on meanwhile.

    @ivar broker: what stands behind it.
    """

    def __init__(self, broker: Broker) -> None:
        """
        @param broker: one that has been entered, such as pytest's C{rocketmq}.
        """
        self.broker = broker

    @property
    def name_server(self) -> str:
        """See L{Broker.name_server}."""
        return self.broker.name_server

    def group(self, name: str) -> str:
        """See L{Broker.group}; nothing is to be awaited."""
        return self.broker.group(name)

    topic = _awaited(Broker.topic)
    send = _awaited(Broker.send)
    messages = _awaited(Broker.messages)
    consumed = _awaited(Broker.consumed)
    wait_consumed = _awaited(Broker.wait_consumed)
    lag = _awaited(Broker.lag)
    advance = _awaited(Broker.advance)
    fault = _awaited(Broker.fault)
    faults = _awaited(Broker.faults)
    clear_faults = _awaited(Broker.clear_faults)
    reset = _awaited(Broker.reset)
    report = _awaited(Broker.report)
