# -*- test-case-name: tests.proxy.test_settings -*-
"""The settings of a proxy, under the names of rmq-proxy.json.

C{docs/facts/proxy.md} 4, 6, 7 and 12 tell what each does in RocketMQ's Proxy; the
defaults are its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, get_type_hints

import attrs

from rocketbroker.config.auth import RELEASES
from rocketbroker.config.metrics import MetricsAccessOptions
from rocketbroker.config.paths import resolved
from rocketbroker.config.tls import CONFIG_FILE, TlsOptions
from rocketbroker.errors import ConfigurationError

#: The port of metrics; RocketMQ's has 5557, which is our broker's.
METRICS_PORT: Final = 5559

#: How large requests may be at the least, unless that is set.
LEAST_INBOUND: Final = 8 << 20

#: Whether a port speaks plain text, both, or TLS only. RocketMQ has a property of Java
#: of this name; here it is a setting as others are.
MODE: Final = "tls.server.mode"

#: Its values.
DISABLED: Final = "disabled"
PERMISSIVE: Final = "permissive"
ENFORCING: Final = "enforcing"
MODES: Final = (DISABLED, PERMISSIVE, ENFORCING)


def _is_mode(_: object, __: object, value: str, key: str = MODE) -> None:
    if value not in MODES:
        raise ConfigurationError(f"{key} is one of {', '.join(MODES)}, not {value!r}")


def _is_metrics_mode(_: object, __: object, value: str) -> None:
    _is_mode(_, __, value, "metricsTls")


def _is_release(_: object, __: object, value: str) -> None:
    if value not in RELEASES:
        raise ConfigurationError(
            f"rocketbrokerAuthRelease is one of {', '.join(RELEASES)}, not {value!r}"
        )


@attrs.frozen(kw_only=True)
class ProxySettings:
    """What rmq-proxy.json may set; times are milliseconds unless a name tells another
    unit."""

    rocket_mq_cluster_name: str = "DefaultCluster"
    namesrv_addr: str = ""
    grpc_server_port: int = 8081
    grpc_max_inbound_message_size: int = 0
    grpc_client_idle_time_mills: int = 120_000
    grpc_shutdown_time_seconds: int = 30
    tls_server_mode: str = attrs.field(default=PERMISSIVE, validator=_is_mode)
    tls_test_mode_enable: bool = True
    tls_cert_path: str = ""
    tls_key_path: str = ""
    max_message_size: int = 4 * 1024 * 1024
    enable_message_body_empty_check: bool = True
    user_property_max_num: int = 128
    max_user_property_size: int = 16384
    max_message_group_size: int = 64
    max_transaction_recovery_second: int = 3600
    max_delay_time_mills: int = 86_400_000
    enable_topic_message_type_check: bool = True
    grpc_client_producer_max_attempts: int = 3
    grpc_client_producer_backoff_initial_millis: int = 10
    grpc_client_producer_backoff_max_millis: int = 1000
    grpc_client_producer_backoff_multiplier: int = 2
    grpc_client_consumer_long_polling_batch_size: int = 32
    grpc_client_consumer_min_long_polling_timeout_millis: int = 5000
    grpc_client_consumer_max_long_polling_timeout_millis: int = 20_000
    enable_proxy_auto_renew: bool = True
    default_invisible_time_mills: int = 60_000
    min_invisible_time_mills_for_recv: int = 10_000
    max_invisible_time_mills: int = 43_200_000
    invisible_time_millis_when_clear: int = 1000
    renew_ahead_time_millis: int = 10_000
    renew_max_time_millis: int = 10_800_000
    renew_schedule_period_millis: int = 5000
    max_renew_retry_times: int = 3
    channel_expired_timeout: int = 120_000
    topic_route_service_cache_refresh_seconds: int = 20
    proxy_cluster_name: str = "DefaultCluster"
    proxy_name: str = ""
    metrics_exporter_type: str = "PROM"
    metrics_prom_exporter_port: int = METRICS_PORT
    metrics_prom_exporter_host: str = ""
    metrics_label: str = ""
    metrics_tls: str = attrs.field(default=DISABLED, validator=_is_metrics_mode)
    metrics_bearer_token_file: str = ""
    authentication_enabled: bool = False
    authentication_provider: str = ""
    authentication_metadata_provider: str = ""
    authentication_strategy: str = ""
    authentication_whitelist: str = ""
    authorization_enabled: bool = False
    authorization_provider: str = ""
    authorization_metadata_provider: str = ""
    authorization_strategy: str = ""
    authorization_whitelist: str = ""
    rocketbroker_auth_release: str = attrs.field(
        default=RELEASES[0], validator=_is_release
    )
    user_cache_refresh_seconds: int = 20
    user_cache_expired_seconds: int = 300
    user_cache_max_num: int = 20_000
    acl_cache_refresh_seconds: int = 20
    acl_cache_expired_seconds: int = 300
    acl_cache_max_num: int = 20_000
    enable_acl_rpc_hook_for_cluster_mode: bool = False
    inner_client_authentication_credentials: str = attrs.field(default="", repr=False)
    tls_enable: bool = False
    tls_config_file: str = CONFIG_FILE
    tls_client_test_mode: bool = True
    tls_client_auth_server: bool = False
    tls_client_trust_cert_path: str = ""
    tls_client_cert_path: str = ""
    tls_client_key_path: str = ""
    tls_client_key_password: str = attrs.field(default="", repr=False)

    @property
    def controls_access(self) -> bool:
        """Whether calls are checked."""
        return self.authentication_enabled or self.authorization_enabled

    @property
    def metrics_access(self) -> MetricsAccessOptions:
        """Who is answered at the port of metrics."""
        path = self.metrics_bearer_token_file
        return MetricsAccessOptions(
            metrics_tls=self.metrics_tls,
            metrics_bearer_token_file=resolved(path) if path else None,
        )

    @property
    def metrics_tls_options(self) -> TlsOptions:
        """TLS at the port of metrics: the certificate is the one of gRPC, or another
        of our own."""
        if self.tls_test_mode_enable or self.metrics_tls == DISABLED:
            return TlsOptions(server_mode=self.metrics_tls)
        return TlsOptions(
            server_mode=self.metrics_tls,
            test_mode_enable=False,
            server_cert_path=resolved(self.tls_cert_path),
            server_key_path=resolved(self.tls_key_path),
        )

    @property
    def inbound_bytes(self) -> int:
        """How large a request may be. RocketMQ's default of 130 MiB lets a few of them
        take all memory, and brokers take none that is much larger than a body."""
        return self.grpc_max_inbound_message_size or max(
            LEAST_INBOUND, 2 * self.max_message_size
        )

    @property
    def has_own_metrics_port(self) -> bool:
        """Whether the port of metrics was chosen, so that no other will do."""
        return self.metrics_prom_exporter_port != METRICS_PORT


#: Names that are not camel case of ours.
_OTHER_NAMES: Final = {
    "rocket_mq_cluster_name": "rocketMQClusterName",
    "tls_server_mode": MODE,
    "tls_enable": "tls.enable",
    "tls_config_file": "tls.config.file",
    "tls_client_test_mode": "tls.test.mode.enable",
    "tls_client_auth_server": "tls.client.authServer",
    "tls_client_trust_cert_path": "tls.client.trustCertPath",
    "tls_client_cert_path": "tls.client.certPath",
    "tls_client_key_path": "tls.client.keyPath",
    "tls_client_key_password": "tls.client.keyPassword",
}


def _key(name: str) -> str:
    first, *rest = name.split("_")
    return _OTHER_NAMES.get(name) or first + "".join(word.title() for word in rest)


#: The names of rmq-proxy.json, and ours for them.
KEYS: Final = {_key(field.name): field.name for field in attrs.fields(ProxySettings)}


def settings_of(values: Mapping[str, Any]) -> tuple[ProxySettings, list[str]]:
    """The settings that rmq-proxy.json has, and its keys that are not used here.

    @raise ConfigurationError: a value is of another kind.
    """
    kinds = get_type_hints(ProxySettings)
    given: dict[str, Any] = {}
    for key, value in values.items():
        name = KEYS.get(key)
        if name is None:
            continue
        if type(value) is not kinds[name]:
            raise ConfigurationError(
                f"{key} is a {kinds[name].__name__} in rmq-proxy.json, not {value!r}"
            )
        given[name] = value
    return ProxySettings(**given), sorted(set(values) - set(KEYS))


def settings_from(text: str) -> tuple[ProxySettings, list[str]]:
    """The settings of a file, see L{settings_of}.

    @raise ConfigurationError: it is no JSON object, or a value is of another kind.
    """
    try:
        values = json.loads(text)
    except ValueError as problem:
        raise ConfigurationError(f"rmq-proxy.json is no JSON: {problem}") from None
    if not isinstance(values, dict):
        raise ConfigurationError("rmq-proxy.json is no JSON object")
    return settings_of(values)


def settings_with(settings: ProxySettings, texts: Mapping[str, str]) -> ProxySettings:
    """Settings with those of a command line in their place.

    @param texts: values by the names of rmq-proxy.json; times and numbers in digits.
    @raise ConfigurationError: a name is not known, or a value makes no sense.
    """
    changes: dict[str, Any] = {}
    kinds = get_type_hints(ProxySettings)
    for key, text in texts.items():
        name = KEYS.get(key)
        if name is None:
            raise ConfigurationError(f"{key} is no setting of a proxy")
        if kinds[name] is str:
            changes[name] = text
        elif kinds[name] is int and text.lstrip("-").isdecimal():
            changes[name] = int(text)
        elif kinds[name] is bool and text in ("true", "false"):
            changes[name] = text == "true"
        else:
            raise ConfigurationError(f"{key} cannot be {text!r}")
    return attrs.evolve(settings, **changes)
