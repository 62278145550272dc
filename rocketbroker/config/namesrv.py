# -*- test-case-name: tests.config.test_namesrv -*-
"""The settings of a name server: all keys of C{docs/facts/namesrv.md 2}.

The metrics keys are ours: RocketMQ's name server has no metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Self

import attrs

from rocketbroker.config import machine
from rocketbroker.config.addresses import check_interface
from rocketbroker.config.keyed import (
    EXPORTERS,
    LONG,
    PORT,
    POSITIVE,
    KeyedOptions,
    running,
    unknown,
)
from rocketbroker.config.metrics import MetricsAccessOptions
from rocketbroker.config.paths import resolved
from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from rocketbroker.config.running import check_change
from rocketbroker.config.tls import TlsOptions
from rocketbroker.config.unsupported import NAME_SERVER, SERVER, check_supported
from rocketbroker.errors import SystemFailure

#: Keys that no request changes, whatever configBlackList says.
NEVER: Final = ("configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome")

#: How long after its start a name server waits for brokers at most, where a request
#: says so: ten registrations of each. It refuses all routes meanwhile.
MAX_WAIT_SECONDS: Final = 300

#: Where a name server listens unless listenPort says otherwise.
NAMESRV_PORT: Final = 9876


def _kv_config_path() -> str:
    return machine.under_home("namesrv", "kvConfig.json")


def _config_store_path() -> str:
    return machine.under_home("namesrv", "namesrv.properties")


@attrs.frozen(kw_only=True, eq=False)
class NamesrvOptions(KeyedOptions):
    """The settings of a name server's own work."""

    BOUNDS: ClassVar = {
        "metrics_prom_exporter_port": PORT,
        "scan_not_active_broker_interval": (1, LONG[1]),
        "un_register_broker_queue_capacity": POSITIVE,
    }
    CHOICES: ClassVar = {"metrics_exporter_type": EXPORTERS}
    CHECKS: ClassVar = {"metrics_prom_exporter_host": check_interface}
    PATHS: ClassVar = {
        "rocketmq_home": resolved,
        "kv_config_path": resolved,
        "config_store_path": resolved,
        "ha_secret_file": resolved,
    }
    ABOUT: ClassVar = {
        "kv_config_path": "the file of key-value settings",
        "config_store_path": "where request 318 writes settings",
        "order_message_enable": "put the order settings of a topic into its route",
        "return_order_topic_config_to_broker": "answer registrations with them",
        "scan_not_active_broker_interval": "time between looks for silent brokers",
        "un_register_broker_queue_capacity": "unregistrations waiting to be applied",
        "support_acting_master": "show a slave as master where its group allows it",
        "enable_all_topic_list": "answer request 206",
        "enable_topic_list": "answer requests 224, 311, 312 and 313",
        "notify_min_broker_id_changed": "tell brokers the least id of their group",
        "need_wait_for_service": "answer no routes just after the start",
        "wait_seconds_for_service": "for how long",
        "delete_topic_with_broker_registration": "a topic not registered is gone",
        "request_hooks": "plug-ins around each request (ours), by name",
        "config_black_list": "keys that request 318 may not change",
        "metrics_exporter_type": "PROM, or DISABLE; the others export nothing",
        "metrics_prom_exporter_port": "the port of /metrics and /healthz; 0: none",
        "metrics_prom_exporter_host": "its address; empty: all",
        "metrics_label": "labels on every sample, key:value,key:value",
        "ha_secret_file": "a file with the secret that request 905 proves to brokers "
        "(ours)",
    }
    UNITS: ClassVar = {
        "scan_not_active_broker_interval": "ms",
        "wait_seconds_for_service": "s",
    }

    rocketmq_home: str | None = attrs.field(factory=machine.rocketmq_home)
    kv_config_path: str = attrs.field(factory=_kv_config_path)
    config_store_path: str = attrs.field(factory=_config_store_path)
    product_env_name: str = "center"
    cluster_test: bool = False
    order_message_enable: bool = running(False)
    return_order_topic_config_to_broker: bool = running(True)
    client_request_thread_pool_nums: int = 8
    default_thread_pool_nums: int = 16
    client_request_thread_pool_queue_capacity: int = 50000
    default_thread_pool_queue_capacity: int = 10000
    scan_not_active_broker_interval: int = running(5000)
    un_register_broker_queue_capacity: int = running(3000)
    support_acting_master: bool = running(False)
    enable_all_topic_list: bool = running(True)
    enable_topic_list: bool = running(True)
    notify_min_broker_id_changed: bool = running(False)
    enable_controller_in_namesrv: bool = False
    need_wait_for_service: bool = running(False)
    wait_seconds_for_service: int = running(45)
    delete_topic_with_broker_registration: bool = running(False)
    config_black_list: str = "configBlackList;configStorePath;kvConfigPath"
    metrics_exporter_type: str = "PROM"
    metrics_prom_exporter_port: int = 5558
    metrics_prom_exporter_host: str = ""
    metrics_label: str = ""
    request_hooks: str = ""
    ha_secret_file: str | None = None


#: The classes of a name server's options.
CLASSES: Final = (
    NamesrvOptions,
    RemotingServerOptions,
    RemotingClientOptions,
    TlsOptions,
    MetricsAccessOptions,
)


@attrs.frozen(kw_only=True, eq=False)
class NamesrvSettings:
    """All that one file says to a name server.

    @ivar options: the name server's own.
    @ivar server: its port.
    @ivar client: its connections to brokers.
    @ivar tls: what is encrypted.
    @ivar metrics: who is answered at the port of metrics.
    @ivar unknown: keys that nothing here knows.
    @ivar properties: the keys and values of the file; request 319 shows them.
    """

    options: NamesrvOptions
    server: RemotingServerOptions
    client: RemotingClientOptions
    tls: TlsOptions
    metrics: MetricsAccessOptions
    unknown: Mapping[str, str]
    properties: Mapping[str, str]

    def parts(self) -> tuple[KeyedOptions, ...]:
        """The options classes' objects."""
        return (self.options, self.server, self.client, self.tls, self.metrics)

    def as_properties(self) -> dict[str, str]:
        """All keys and values: those of the file, and those in force."""
        secret = TlsOptions.secret_keys()
        return {
            **{key: text for key, text in self.properties.items() if key not in secret},
            **self.options.as_properties(),
            **self.server.as_properties(),
        }

    def changed(self, texts: Mapping[str, str]) -> Self:
        """These settings after a change that a request asks for.

        @param texts: the new values, by key.
        @raise NoPermission: a key that a request may not change.
        @raise SystemFailure: a value that does not fit.
        """
        black_list = self.options.config_black_list
        tables = (*SERVER, *NAME_SERVER)
        check_change(texts, self.parts(), NEVER, black_list, tables)
        options = self.options.changed(texts)
        seconds = options.wait_seconds_for_service
        if (
            texts.keys() & {"needWaitForService", "waitSecondsForService"}
            and options.need_wait_for_service
            and seconds > MAX_WAIT_SECONDS
        ):
            raise SystemFailure(
                f"waitSecondsForService would be {seconds}, in which all routes are "
                f"refused: a request can make it {MAX_WAIT_SECONDS} at most"
            )
        return attrs.evolve(
            self,
            options=options,
            server=self.server.changed(texts),
            client=self.client.changed(texts),
        )

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], path: str | None = None
    ) -> Self:
        """Settings from the keys and values of a file.

        @param path: the file, which then is also where request 318 writes; None if
            there is none.
        @raise ConfigurationError: a value that does not fit; one sentence.
        """
        source = path or "settings"
        options = NamesrvOptions.from_properties(properties, source)
        check_supported(properties, source, (*SERVER, *NAME_SERVER))
        tls = TlsOptions.read(properties, source)
        metrics = MetricsAccessOptions.from_properties(properties, source)
        metrics.check(tls, source)
        if path is not None:
            options = attrs.evolve(options, config_store_path=path)
        return cls(
            options=options,
            server=RemotingServerOptions.from_properties(
                properties, source, listen_port=NAMESRV_PORT
            ),
            client=RemotingClientOptions.from_properties(properties, source),
            tls=tls,
            metrics=metrics,
            unknown=unknown(properties, CLASSES),
            properties=dict(properties),
        )
