# -*- test-case-name: tests.broker.registration.test_name_server_api -*-
"""The requests of a broker to name servers, one method each.

Rules: docs/facts/broker.md 9.1 and 9.2."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cached_property
from typing import Final, NamedTuple, final

import attrs
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from rocketbroker.broker.context import Caller
from rocketbroker.broker.registration.masters import Master
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import TopicNotExist, error_of_response
from rocketbroker.records.names import SYNC_MEMBER_PREFIX
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.registration import RegisterBrokerBody, plain_body
from rocketbroker.wire.bodies.routes import (
    GetBrokerMemberGroupResponseBody,
    QueueData,
    TopicRouteData,
)
from rocketbroker.wire.bodies.topics import DataVersion, KVTable, TopicConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.fastjson import dumps, loads
from rocketbroker.wire.headers.namesrv import (
    BrokerHeartbeatRequestHeader,
    GetBrokerMemberGroupRequestHeader,
    GetRouteInfoRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    RegisterTopicRequestHeader,
    UnRegisterBrokerRequestHeader,
)

#: How long to wait for a name server when there is little to carry over.
SHORT_SECONDS: Final = 3.0

#: A CRC as Java has it, without the sign.
CRC_BITS: Final = 0x7FFFFFFF


@attrs.frozen(eq=False)
class Batch:
    """Topics that are registered together.

    @ivar configs: sorted by name.
    @ivar version: of the table that has them, or one that stands for it.
    @ivar compressed: compressedRegister.
    @ivar infos: of those of them that are static topics.
    """

    configs: list[TopicConfig]
    version: DataVersion
    compressed: bool
    infos: Mapping[str, TopicQueueMappingInfo] = attrs.Factory(dict)

    @cached_property
    def body(self) -> bytes:
        """The body of the request, made once for all name servers."""
        if not self.compressed:
            return plain_body(self.configs, self.version, self.infos)
        body = RegisterBrokerBody.of(self.configs, self.version, self.infos)
        return body.encode(True)

    @cached_property
    def crc(self) -> int:
        """The check sum of the body, without the sign of Java's."""
        return zlib.crc32(self.body) & CRC_BITS


class RegisterAnswer(NamedTuple):
    """The name server's answer to a registration.

    @ivar orders: the topics that the name server says are ordered; None for none.
    @ivar master: for a slave.
    """

    orders: KVTable | None = None
    master: Master = Master()


@final
class NameServerApi:
    """Requests to name servers, as this broker.

    @ivar address: where clients find this broker.
    @ivar ha_address: where slaves find it.
    """

    def __init__(
        self, client: Caller, options: BrokerOptions, address: str, ha_address: str
    ) -> None:
        self.address = address
        self.ha_address = ha_address
        self._client = client
        self._options = options
        self._seconds = options.register_broker_timeout_mills / 1000

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        self._seconds = settings.broker.register_broker_timeout_mills / 1000

    def register(self, server: str, batch: Batch) -> Deferred[RegisterAnswer]:
        """Request 103: topics of this broker.

        @return: fails if the name server did not take them.
        """
        options = self._options
        header = RegisterBrokerRequestHeader(
            broker_name=options.broker_name,
            broker_addr=self.address,
            cluster_name=options.broker_cluster_name,
            ha_server_addr=self.ha_address,
            broker_id=options.broker_id,
            heartbeat_timeout_millis=(
                options.broker_not_active_timeout_millis
                if options.enable_slave_acting_master
                else None
            ),
            enable_acting_master=options.enable_slave_acting_master,
            compressed=batch.compressed,
            body_crc32=batch.crc,
        )
        command = Command(RequestCode.REGISTER_BROKER, header.to_ext(), batch.body)
        return self._call(server, command, self._seconds).addCallback(registered)

    def unregister(self, server: str) -> Deferred[None]:
        """Request 104: this broker goes."""
        options = self._options
        header = UnRegisterBrokerRequestHeader(
            broker_name=options.broker_name,
            broker_addr=self.address,
            cluster_name=options.broker_cluster_name,
            broker_id=options.broker_id,
        )
        command = Command(RequestCode.UNREGISTER_BROKER, header.to_ext())
        return self._call(server, command, SHORT_SECONDS).addCallback(nothing)

    def needs_data(self, server: str, version: DataVersion) -> Deferred[bool]:
        """Request 322: whether the name server has another version of the topics.

        @return: a name server that cannot be reached or understood needs them; one
            that refuses to say does not.
        """
        command = self._version_question(version)
        asked = self._client.invoke(server, command, self._seconds)
        needs = asked.addCallback(differs, version)
        return needs.addErrback(lambda failure: True)

    def _version_question(self, version: DataVersion, flag: int = 0) -> Command:
        """Request 322."""
        options = self._options
        header = QueryDataVersionRequestHeader(
            broker_name=options.broker_name,
            broker_addr=self.address,
            cluster_name=options.broker_cluster_name,
            broker_id=options.broker_id,
        )
        body = dumps(version.to_json())
        return Command(RequestCode.QUERY_DATA_VERSION, header.to_ext(), body, flag=flag)

    def heartbeat(self, server: str, version: DataVersion) -> None:
        """This broker lives: request 904, or 322 with compatibleWithOldNameSrv, which
        name servers without 904 count as a sign of life, too. Nobody waits for it."""
        options = self._options
        if options.compatible_with_old_name_srv:
            command = self._version_question(version, ONEWAY)
        else:
            header = BrokerHeartbeatRequestHeader(
                cluster_name=options.broker_cluster_name,
                broker_addr=self.address,
                broker_name=options.broker_name,
            )
            code = RequestCode.BROKER_HEARTBEAT
            command = Command(code, header.to_ext(), flag=ONEWAY)
        self._client.oneway(server, command)

    def members(self, server: str) -> Deferred[dict[int, str]]:
        """The brokers that share this one's name, by id: request 901, or with
        compatibleWithOldNameSrv the route of a topic that all of them have.

        @return: fires with none if the name server knows none.
        """
        options = self._options
        name, cluster = options.broker_name, options.broker_cluster_name
        if options.compatible_with_old_name_srv:
            route = self.route(server, SYNC_MEMBER_PREFIX + name)
            return route.addCallbacks(members_of, no_members, (name, cluster))
        header = GetBrokerMemberGroupRequestHeader(
            cluster_name=cluster, broker_name=name
        )
        command = Command(RequestCode.GET_BROKER_MEMBER_GROUP, header.to_ext())
        return self._call(server, command, SHORT_SECONDS).addCallback(member_group)

    def register_topic(self, server: str, config: TopicConfig) -> Deferred[None]:
        """Request 217: the route of one topic."""
        options = self._options
        route = TopicRouteData(
            queue_datas=[
                QueueData(
                    broker_name=options.broker_name,
                    read_queue_nums=config.read_queue_nums,
                    write_queue_nums=config.write_queue_nums,
                    perm=config.perm,
                    topic_sys_flag=config.topic_sys_flag,
                )
            ]
        )
        header = RegisterTopicRequestHeader(topic=config.topic_name)
        command = Command(
            RequestCode.REGISTER_TOPIC_IN_NAMESRV,
            header.to_ext(),
            dumps(route.to_json()),
        )
        return self._call(server, command, SHORT_SECONDS).addCallback(nothing)

    def route(self, server: str, topic: str) -> Deferred[TopicRouteData]:
        """Request 105: where a topic is.

        @return: fails with TopicNotExist if the name server does not know.
        """
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        command = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, header.to_ext())
        return self._call(server, command, SHORT_SECONDS).addCallback(route_of)

    def _call(self, server: str, command: Command, seconds: float) -> Deferred[Command]:
        return self._client.invoke(server, command, seconds).addCallback(successful)


def successful(answer: Command) -> Command:
    """The answer, if it is one of success.

    @raise BrokerError: it is not.
    """
    if answer.code != 0:
        raise error_of_response(answer.code, answer.remark)
    return answer


def nothing(answer: Command) -> None:
    """An answer that says no more than that it was done."""


def route_of(answer: Command) -> TopicRouteData:
    """The route in an answer.

    @raise RemoteProtocolError: it has no route.
    """
    return TopicRouteData.from_json(loads(answer.body))


def members_of(route: TopicRouteData, name: str, cluster: str) -> dict[int, str]:
    """The addresses of a group in a route."""
    for data in route.broker_datas:
        if (data.broker_name, data.cluster) == (name, cluster):
            return data.broker_addrs
    return {}


def no_members(failure: Failure) -> dict[int, str]:
    """No broker has the topic: there is none of the group."""
    failure.trap(TopicNotExist)  # type: ignore[no-untyped-call]
    return {}


def member_group(answer: Command) -> dict[int, str]:
    """The addresses in the answer to request 901.

    @raise RemoteProtocolError: it has none.
    """
    body = GetBrokerMemberGroupResponseBody.from_json(loads(answer.body))
    return body.broker_member_group.broker_addrs


def registered(answer: Command) -> RegisterAnswer:
    """What answers a registration."""
    header = RegisterBrokerResponseHeader.from_ext(answer.ext)
    # Name servers write an empty text for what they do not know.
    return RegisterAnswer(
        KVTable.from_json(loads(answer.body)) if answer.body else None,
        Master(header.ha_server_addr or None, header.master_addr or None),
    )


def differs(answer: Command, version: DataVersion) -> bool:
    """Whether the answer to request 322 asks for a registration."""
    if answer.code != 0:
        return False
    if QueryDataVersionResponseHeader.from_ext(answer.ext).changed:
        return True
    return bool(answer.body) and DataVersion.from_json(loads(answer.body)) != version
