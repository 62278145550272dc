# -*- test-case-name: tests.config.test_broker_settings -*-
"""All that one file says to a broker, with the rules that tie its parts together.

The rules: the broker sheet, section 1.3. Roles that other issues bring are refused in
words, so that nobody believes to have a copy that is not made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

import attrs

from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.keyed import PORT, unknown
from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ConfigurationError

#: Where a broker listens unless listenPort says otherwise.
BROKER_PORT: Final = 10911

#: Keys that say where the name servers are looked for; not in any class.
ADDRESS_SERVER_KEYS: Final = ("rmqAddressServerDomain", "rmqAddressServerSubGroup")


def addresses(text: str | None, source: str, key: str) -> tuple[str, ...]:
    """The entries of an address list: C{host:port;host:port}.

    @raise ConfigurationError: an entry is something else; one sentence.
    """
    found = []
    for entry in (text or "").split(";"):
        address = entry.strip()
        if not address:
            continue
        host, colon, port = address.rpartition(":")
        well_formed = colon and host and port.isascii() and port.isdigit()
        if not well_formed or not 0 < int(port[:9]) <= PORT[1]:
            raise ConfigurationError(
                f"{source}: {key} cannot contain {address!r}: each entry must be "
                f"host:port, as in 127.0.0.1:9876;192.168.0.1:9876."
            )
        found.append(address)
    return tuple(found)


@attrs.frozen(kw_only=True, eq=False)
class BrokerSettings:
    """All that one file says to a broker.

    @ivar broker: what it does.
    @ivar server: its main port.
    @ivar client: its connections to name servers.
    @ivar store: where it keeps messages; C{ha_listen_port} is settled.
    @ivar name_servers: their addresses, none if it works alone.
    @ivar unknown: keys that nothing here knows; request 26 shows them.
    """

    broker: BrokerOptions
    server: RemotingServerOptions
    client: RemotingClientOptions
    store: StoreOptions
    name_servers: tuple[str, ...]
    unknown: Mapping[str, str]

    def as_properties(self) -> dict[str, str]:
        """All settings as text, by their keys; also those that are not known."""
        known = dict(self.unknown)
        for options in (self.broker, self.server, self.client, self.store):
            known.update(options.as_properties())
        return known

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, str],
        path: str | None = None,
        name_servers: str | None = None,
    ) -> Self:
        """Settings from what a file said.

        @param path: the file, which then is also the one that request 25 rewrites;
            None if there is none.
        @param name_servers: the command line's C{-n}, which wins over the file.
        @raise ConfigurationError: a value that does not fit, or a role that is not
            there yet; one sentence.
        """
        source = path or "settings"
        broker = BrokerOptions.from_properties(properties, source)
        server = RemotingServerOptions.from_properties(
            properties, source, listen_port=BROKER_PORT
        )
        store = StoreOptions.from_properties(properties, source, ha_listen_port=0)
        _check_role(broker, store, source)
        if path is not None:
            broker = attrs.evolve(broker, broker_config_path=path)
        if name_servers is not None:
            source = "-n"
            broker = attrs.evolve(broker, namesrv_addr=name_servers)
        if store.ha_listen_port <= 0:
            store = attrs.evolve(store, ha_listen_port=_next_port(server.listen_port))
        classes = (
            BrokerOptions,
            RemotingServerOptions,
            RemotingClientOptions,
            StoreOptions,
        )
        return cls(
            broker=attrs.evolve(broker, broker_id=0),
            server=server,
            client=RemotingClientOptions.from_properties(properties, source),
            store=store,
            name_servers=addresses(broker.namesrv_addr, source, "namesrvAddr"),
            unknown={
                key: text
                for key, text in unknown(properties, classes).items()
                if key not in ADDRESS_SERVER_KEYS
            },
        )


def _next_port(main: int) -> int:
    """The HA port of a main port; any free one (0) stays any free one."""
    return main + 1 if 0 < main < PORT[1] else 0


def _check_role(broker: BrokerOptions, store: StoreOptions, source: str) -> None:
    """Refuse what this broker cannot be.

    @raise ConfigurationError: one sentence.
    """
    if broker.enable_controller_mode and store.enable_d_leger_commit_log:
        raise ConfigurationError(
            f"{source}: enableControllerMode and enableDLegerCommitLog exclude each "
            f"other."
        )
    for key, wanted in (
        ("enableControllerMode", broker.enable_controller_mode),
        ("enableDLegerCommitLog", store.enable_d_leger_commit_log),
    ):
        if wanted:
            raise ConfigurationError(f"{source}: {key} is not supported yet.")
    for key, value, wanted_text in (
        ("storeType", store.store_type, "default"),
        ("configManagerVersion", broker.config_manager_version, "V1"),
    ):
        if value.lower() != wanted_text.lower():
            raise ConfigurationError(
                f"{source}: {key} cannot be {value!r}: queues and tables are kept in "
                f"files, as {wanted_text} says, and not in RocksDB."
            )
    if store.broker_role == "SLAVE":
        if broker.broker_id <= 0:
            raise ConfigurationError(
                f"{source}: brokerId cannot be {broker.broker_id} for a slave: it must "
                f"be greater than 0."
            )
        raise ConfigurationError(f"{source}: brokerRole SLAVE is not supported yet.")
