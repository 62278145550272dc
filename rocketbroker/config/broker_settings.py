# -*- test-case-name: tests.config.test_broker_settings -*-
"""All that one file says to a broker, with the rules that tie its parts together.

The rules: C{docs/facts/broker.md 1.3}. What is not built is refused:
L{rocketbroker.config.unsupported}.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, Self

import attrs

from rocketbroker.config import machine
from rocketbroker.config.addresses import addresses, advertised_address
from rocketbroker.config.auth import AuthOptions
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.keyed import PORT, KeyedOptions, unknown
from rocketbroker.config.metrics import MetricsAccessOptions
from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from rocketbroker.config.running import check_change
from rocketbroker.config.store import StoreOptions
from rocketbroker.config.tls import DISABLED, ENFORCING, PERMISSIVE, TlsOptions
from rocketbroker.config.unsupported import (
    BROKER,
    SERVER,
    check_identity,
    check_supported,
)
from rocketbroker.errors import ConfigurationError

#: Where a broker listens unless listenPort says otherwise.
BROKER_PORT: Final = 10911

#: By so much less accessMessageInMemoryMaxRatio is on a slave.
SLAVE_RATIO: Final = 10

#: The classes of a broker's options.
CLASSES: Final = (
    BrokerOptions,
    RemotingServerOptions,
    RemotingClientOptions,
    StoreOptions,
    TlsOptions,
    AuthOptions,
    MetricsAccessOptions,
)

#: Keys that no request changes, whatever configBlackList says.
NEVER: Final = ("brokerConfigPath", "configBlackList", "rocketmqHome")

#: Keys that say where an address server is, and their defaults; not in any class.
ADDRESS_SERVER_KEYS: Final = {
    "rmqAddressServerDomain": "jmenv.tbsite.net",
    "rmqAddressServerSubGroup": "nsaddr",
}


@attrs.frozen(kw_only=True, eq=False)
class BrokerSettings:
    """All that one file says to a broker.

    @ivar broker: the broker's own settings.
    @ivar server: its main port.
    @ivar client: its connections to name servers.
    @ivar store: where it keeps messages; C{ha_listen_port} is settled.
    @ivar tls: what is encrypted.
    @ivar auth: who may do what, by ACL 2.0.
    @ivar metrics: who is answered at the port of metrics.
    @ivar name_servers: their addresses, none if it works alone.
    @ivar address_server: the page that names them where no setting does.
    @ivar unknown: keys that nothing here knows; request 26 shows them.
    @ivar given: the keys that were set, by the file or the command line.
    @ivar address_reason: why clients are told the address C{brokerIP1}.
    """

    broker: BrokerOptions
    server: RemotingServerOptions
    client: RemotingClientOptions
    store: StoreOptions
    tls: TlsOptions
    auth: AuthOptions
    metrics: MetricsAccessOptions
    name_servers: tuple[str, ...]
    unknown: Mapping[str, str]
    address_server: str = ""
    given: frozenset[str] = frozenset()
    address_reason: str = ""

    @property
    def advertised_port(self) -> int:
        """The port that clients are told."""
        return self.broker.rocketbroker_advertised_port or self.server.listen_port

    def parts(self) -> tuple[KeyedOptions, ...]:
        """The options classes' objects."""
        return (
            self.broker,
            self.server,
            self.client,
            self.store,
            self.tls,
            self.auth,
            self.metrics,
        )

    @property
    def controls_access(self) -> bool:
        """Whether rules say who may do what."""
        return self.broker.acl_enable or self.auth.is_on

    @property
    def home(self) -> str:
        """Where files of access control are, below C{conf}: the home directory of
        RocketMQ, that of the settings file, or that of the store."""
        if self.broker.rocketmq_home:
            return self.broker.rocketmq_home
        path = self.broker.broker_config_path
        return os.path.dirname(path) if path else self.store.store_path_root_dir

    @property
    def has_name_servers(self) -> bool:
        """Whether name servers are named, or a page that names them."""
        return bool(self.name_servers) or (
            self.broker.fetch_namesrv_addr_by_address_server
        )

    def changes_path(self) -> str:
        """The file that keeps what requests change."""
        return self.broker.broker_config_path or changes_path(
            self.store.store_path_root_dir
        )

    def as_properties(self) -> dict[str, str]:
        """All settings as text, by their keys; also those that are not known."""
        known = dict(self.unknown)
        for options in self.parts():
            known.update(options.as_properties())
        return known

    def changed(self, texts: Mapping[str, str]) -> Self:
        """These settings after a change that a request asks for.

        @param texts: the new values, by key.
        @raise NoPermission: a key that a request may not change.
        @raise SystemFailure: a value that does not fit.
        """
        black_list = self.broker.config_black_list
        tables = (*SERVER, *BROKER)
        check_change(texts, self.parts(), NEVER, black_list, tables)
        return attrs.evolve(
            self,
            broker=self.broker.changed(texts),
            server=self.server.changed(texts),
            client=self.client.changed(texts),
            store=self.store.changed(texts),
        )

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, str],
        path: str | None = None,
        name_servers: str | None = None,
    ) -> Self:
        """Settings from the keys and values of a file.

        @param path: the file, which then is also the one that request 25 rewrites;
            None if there is none.
        @param name_servers: the command line's C{-n}, which wins over the file.
        @raise ConfigurationError: a value that does not fit, or asks for what is not
            built; one sentence.
        """
        source = path or "settings"
        broker = BrokerOptions.from_properties(properties, source)
        server = RemotingServerOptions.from_properties(
            properties, source, listen_port=BROKER_PORT
        )
        store = StoreOptions.from_properties(properties, source, ha_listen_port=0)
        tls = TlsOptions.read(properties, source)
        metrics = MetricsAccessOptions.from_properties(properties, source)
        metrics.check(tls, source)
        if store.ha_tls_required and tls.server_mode == DISABLED:
            raise ConfigurationError(
                f"{source}: haTlsRequired=true needs tls.server.mode={PERMISSIVE} or "
                f"{ENFORCING}: haListenPort has no certificate of its own."
            )
        check_supported(properties, source, (*SERVER, *BROKER))
        auth = AuthOptions.from_properties(properties, source)
        if auth.is_on and broker.acl_enable:
            raise ConfigurationError(
                f"{source}: aclEnable is ACL 1.0, and authenticationEnabled and "
                "authorizationEnabled are ACL 2.0: one of the two can be on. "
                "migrateAuthFromV1Enabled makes users of accounts."
            )
        check_identity(store.broker_role, broker.broker_id, source)
        address, reason = advertised_address(
            server.bind_address, machine.local_address(), machine.ipv4_addresses()
        )
        broker = attrs.evolve(
            broker,
            broker_ip1=broker.broker_ip1 if "brokerIP1" in properties else address,
            broker_ip2=broker.broker_ip2 if "brokerIP2" in properties else address,
        )
        if store.broker_role == "SLAVE":
            ratio = store.access_message_in_memory_max_ratio - SLAVE_RATIO
            store = attrs.evolve(
                store, access_message_in_memory_max_ratio=max(0, ratio)
            )
        else:
            broker = attrs.evolve(broker, broker_id=0)
        if path is not None:
            broker = attrs.evolve(broker, broker_config_path=path)
        if name_servers is not None:
            source = "-n"
            broker = attrs.evolve(broker, namesrv_addr=name_servers)
        if store.ha_listen_port <= 0:
            store = attrs.evolve(store, ha_listen_port=_next_port(server.listen_port))
        return cls(
            broker=broker,
            server=server,
            client=RemotingClientOptions.from_properties(properties, source),
            store=store,
            tls=tls,
            auth=auth,
            metrics=metrics,
            name_servers=addresses(broker.namesrv_addr, source, "namesrvAddr"),
            address_server=address_server(properties),
            unknown={
                key: text
                for key, text in unknown(properties, CLASSES).items()
                if key not in ADDRESS_SERVER_KEYS
            },
            given=frozenset(properties),
            address_reason="brokerIP1" if "brokerIP1" in properties else reason,
        )


def address_server(properties: Mapping[str, str]) -> str:
    """The page of an address server; C{docs/facts/broker.md} 1.2."""
    domain, group = (
        properties.get(key, standard).strip()
        for key, standard in ADDRESS_SERVER_KEYS.items()
    )
    port = "" if ":" in domain else ":8080"
    return f"http://{domain}{port}/rocketmq/{group}"


def changes_path(root: str) -> str:
    """Where a store keeps the changed settings of a broker that has no file of its own;
    RocketMQ has the same name."""
    return f"{root}/config/broker.properties"


def _next_port(main: int) -> int:
    """The HA port of a main port; any free one (0) stays any free one."""
    return main + 1 if 0 < main < PORT[1] else 0
