# -*- test-case-name: tests.client.test_session -*-
"""Options of C{connect}, C{consumer} and C{on}, the same for all three faces.

Unknown names are refused. C{docs/clients.rst} tells what each does; so do
L{rocketbroker.client.settings}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypedDict

import attrs

from rocketbroker.client.observers import Observer, observers_of
from rocketbroker.client.settings import (
    ClientSettings,
    ConsumerSettings,
    ProducerSettings,
    name_servers,
)
from rocketbroker.errors import ConfigurationError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from rocketbroker.routing.allocation import Strategy


#: What stands before the name of an option in a variable of the environment.
VARIABLE_PREFIX: Final = "ROCKETMQ_CLIENT_"

_TRUTHS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}

#: What reads a text as a value of a type.
_READERS: Final[dict[type, Callable[[str], Any]]] = {
    str: str,
    int: int,
    float: float,
    bool: lambda text: _TRUTHS[text.lower()],
    object: lambda text: _TRUTHS.get(text.lower(), text),  # a truth or a name
}


class ClientOptions(TypedDict, total=False):
    """Options of C{connect}: those of a client and of its producer, and:

    @ivar metrics: a registry of prometheus-client, which gets metrics of the client.
    @ivar settings: a mapping of options, as a file has them: texts are read. What is
        given by name counts more, the environment (C{ROCKETMQ_CLIENT_PATIENCE=30})
        less.
    """

    seconds: float
    patience: float
    route_seconds: float
    heartbeat_seconds: float
    instance_name: str
    unit_name: str
    max_frame_bytes: int
    namespace: str | None
    namespace_v2: str | None
    unit_mode: bool
    heartbeat_v2: bool
    observers: Iterable[Observer]
    metrics: CollectorRegistry
    settings: Mapping[str, Any]
    trace: bool | str
    tls: bool
    tls_verify: bool
    tls_ca: str | None
    tls_certificate: str | None
    tls_key: str | None
    tls_key_password: str | None
    access_key: str | None
    secret_key: str | None
    security_token: str | None
    group: str
    attempts: int
    compress_over: int
    compress: str
    compress_level: int
    max_body_bytes: int
    batch_bytes: int
    avoid_slow: bool
    detector: bool
    detect_seconds: float
    detect_interval: float
    accumulate: bool
    accumulate_seconds: float
    accumulate_bytes: int
    accumulate_total_bytes: int
    max_sends: int
    max_send_bytes: int
    retry_unsafe: bool


class ConsumerOptions(TypedDict, total=False):
    """Options of C{consumer} and C{on}: those of a consumer, and:

    @ivar tags: which messages: tags as C{"a || b"}, or a list of them.
    @ivar sql: which messages: an SQL92 expression over their properties.
    @ivar wait_for_topic: whether a topic that does not exist yet is waited for; false:
        that is an error.
    """

    tags: str | Iterable[str] | None
    sql: str | None
    ordered: bool
    broadcast: bool
    mode: str
    invisible_seconds: float
    start: str | float | datetime
    strategy: str | Strategy
    assignment: str
    prefetch: int
    prefetch_bytes: int
    max_unacknowledged: int
    max_span: int
    consume_timeout: float
    max_attempts: int | None
    pull_batch: int
    pull_bytes: int
    hold_seconds: float
    commit_seconds: float
    rebalance_seconds: float
    suspend_seconds: float
    offset_folder: str | None
    wait_for_topic: bool


def _names(settings: type[attrs.AttrsInstance]) -> set[str]:
    return {field.name for field in attrs.fields(settings)}


def _refuse_unknown(options: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(options) - known)
    if unknown:
        (name, *_) = unknown
        meant = get_close_matches(name, sorted(known), 1)
        hint = f"did you mean {meant[0]!r}? T" if meant else "t"
        raise ConfigurationError(
            f"there is no option {name!r}; {hint}here are {', '.join(sorted(known))}"
        )


def client_settings(
    given: str | Iterable[str] | None,
    options: Mapping[str, Any],
    environment: Mapping[str, str],
) -> tuple[ClientSettings, ProducerSettings]:
    """The settings of a client and of its producer.

    @param given: the name servers, as L{name_servers} takes them.
    @raise ConfigurationError: something cannot be as it is given.
    """
    of_client = _names(ClientSettings) - {"name_servers"}
    of_producer = _names(ProducerSettings)
    _refuse_unknown(options, of_client | of_producer | {"metrics", "settings"})
    options = {
        **_of_environment(environment),
        **_of_mapping(options.get("settings") or {}),
        **options,
    }
    if given is None:
        given = options.get("name_servers")
    servers = name_servers(given, environment)
    if options.get("metrics") is not None:
        options = {**options, "observers": _with_metrics(options)}
    return (
        ClientSettings(
            name_servers=servers,
            **{name: options[name] for name in of_client & set(options)},
        ),
        ProducerSettings(
            **{name: options[name] for name in of_producer & set(options)}
        ),
    )


def _readable() -> dict[str, type]:
    """The types of the options that can be read from a text."""
    fields = (*attrs.fields(ClientSettings), *attrs.fields(ProducerSettings))
    kinds: dict[str, type[Any]] = {one.name: type(one.default) for one in fields}
    kinds.update(dict.fromkeys(("instance_name", "unit_name"), str))
    kinds.update(dict.fromkeys(("namespace", "namespace_v2"), str), trace=object)
    return {name: kind for name, kind in kinds.items() if kind in _READERS}


def _of_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Options that variables name; those that name none are somebody else's."""
    found = {}
    for name, kind in _readable().items():
        variable = f"{VARIABLE_PREFIX}{name.upper()}"
        text = environment.get(variable)
        if text:
            found[name] = _read(variable, kind, text)
    return found


def _of_mapping(given: object) -> dict[str, Any]:
    """Options of a mapping, of which texts are read.

    @raise ConfigurationError: something cannot be as it is given.
    """
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"settings are a mapping of options, not {given!r}")
    known = _names(ClientSettings) | _names(ProducerSettings) | {"metrics"}
    _refuse_unknown(given, known)
    kinds = _readable()
    return {
        name: _read(name, kinds[name], value)
        if isinstance(value, str) and name in kinds
        else value
        for name, value in given.items()
    }


def _read(name: str, kind: type, text: str) -> Any:
    try:
        return _READERS[kind](text.strip())
    except (ValueError, KeyError):
        what = {bool: "true or false", int: "a whole number"}.get(kind, "a number")
        raise ConfigurationError(f"{name} has to be {what}, not {text!r}") from None


def _with_metrics(options: Mapping[str, Any]) -> list[Observer]:
    from rocketbroker.client.metrics import metrics_in  # few programs need it

    given = observers_of(options.get("observers"))
    return [*(given.all if given is not None else ()), metrics_in(options["metrics"])]


def consumer_settings(group: str, options: Mapping[str, Any]) -> ConsumerSettings:
    """The settings of a consumer.

    @raise ConfigurationError: something cannot be as it is given.
    """
    beside = {"tags", "sql", "wait_for_topic"}
    known = _names(ConsumerSettings) - {"group"}
    _refuse_unknown(options, known | beside)
    return ConsumerSettings(
        group=group,
        **{name: value for name, value in options.items() if name in known},
    )
