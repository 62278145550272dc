# -*- test-case-name: tests.app.test_startflags -*-
"""Flags of every program that is a server, and the line it says when it is ready.

C{rocketbroker standalone}, C{broker run}, C{namesrv run} and twistd have them alike::

    --set KEY=VALUE        a setting; flags win over it, and it wins over the file
    --metrics-port N|off   0: any free port
    --topic NAME:QUEUES    of a broker: a topic that is to be there
    --exit-with-parent     stop when the process that started this one is gone
    --output text|json     the ready line

A program that starts a server reads the JSON line, so that one never loses a key and
never gives one another meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

import attrs

from rocketbroker.config.addresses import advertised_address
from rocketbroker.config.keyed import PORT
from rocketbroker.errors import ConfigurationError
from rocketbroker.records.names import MAX_QUEUES, is_system_topic, topic_problem

#: The key of the port of metrics.
METRICS_PORT: Final = "metricsPromExporterPort"

#: What C{--metrics-port} says for none.
OFF: Final = "off"

#: What C{--output} can be.
OUTPUTS: Final = ("text", "json")

#: The address of this machine for itself.
LOOPBACK: Final = "127.0.0.1"


@final
@attrs.frozen(kw_only=True)
class StartFlags:
    """What a command line says besides a server's own flags.

    @ivar settings: those of C{--set}.
    @ivar topics: the topics that are to be there, with the number of their queues.
    @ivar metrics_port: the port of metrics, 0 for any that is free, C{off} for none;
        C{None} leaves it to the settings.
    @ivar exit_with_parent: whether the server stops when its parent is gone.
    @ivar output: the form of the ready line.
    """

    settings: Mapping[str, str] = attrs.field(factory=dict)
    topics: Mapping[str, int] = attrs.field(factory=dict)
    metrics_port: str | None = None
    exit_with_parent: bool = False
    output: str = "text"

    @classmethod
    def from_texts(
        cls,
        settings: Iterable[str] = (),
        topics: Iterable[str] = (),
        metrics_port: str | None = None,
        exit_with_parent: bool = False,
        output: str = "text",
    ) -> StartFlags:
        """The flags as a command line gives them.

        @raise ConfigurationError: one of them makes no sense; one sentence.
        """
        if output not in OUTPUTS:
            raise ConfigurationError(
                f"--output cannot be {output!r}: it must be one of "
                f"{', '.join(OUTPUTS)}."
            )
        return cls(
            settings=dict(map(setting, settings)),
            topics=dict(map(topic, topics)),
            metrics_port=None if metrics_port is None else port_or_off(metrics_port),
            exit_with_parent=exit_with_parent,
            output=output,
        )

    @property
    def is_any_metrics_port(self) -> bool:
        """Whether metrics are to have any free port."""
        return self.metrics_port == "0"

    def over(self, given: Mapping[str, str]) -> dict[str, str]:
        """The settings of a file, with these in their place."""
        settings = {**given, **self.settings}
        if self.metrics_port is not None:
            port = self.metrics_port
            settings[METRICS_PORT] = "0" if port == OFF else port
        return settings


#: A command line without any of them.
NO_FLAGS: Final = StartFlags()


def setting(text: str) -> tuple[str, str]:
    """A key and its value, from C{KEY=VALUE}.

    @raise ConfigurationError: it is something else; one sentence.
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ConfigurationError(
            f"--set cannot be {text!r}: it must be KEY=VALUE, as in "
            "flushDiskType=SYNC_FLUSH."
        )
    return key, value.strip()


def topic(text: str) -> tuple[str, int]:
    """A topic and the number of its queues, from C{NAME:QUEUES}.

    @raise ConfigurationError: it is something else; one sentence.
    """
    name, _, queues = text.rpartition(":")
    problem = None
    if not name or not queues.isascii() or not queues.isdigit():
        problem = "it must be NAME:QUEUES, as in orders:4"
    elif not 0 < int(queues[:9]) <= MAX_QUEUES:
        problem = f"a topic has from 1 to {MAX_QUEUES} queues"
    elif is_system_topic(name):
        problem = "that is a topic of the system"
    else:
        problem = topic_problem(name)
    if problem is not None:
        problem = problem.rstrip(".")
        raise ConfigurationError(f"--topic cannot be {text!r}: {problem}.")
    return name, int(queues)


def port_or_off(text: str) -> str:
    """The value of C{--metrics-port}.

    @raise ConfigurationError: it is neither a port nor C{off}; one sentence.
    """
    is_number = text.isascii() and text.isdigit() and int(text[:9]) <= PORT[1]
    if text != OFF and not is_number:
        raise ConfigurationError(
            f"--metrics-port cannot be {text!r}: it must be a port, 0 for any that is "
            "free, or off for none."
        )
    return text if text == OFF else str(int(text))


@final
@attrs.frozen(kw_only=True)
class ReadyBroker:
    """A broker of the ready line.

    @ivar address: where clients on this machine reach it.
    """

    name: str
    id: int
    address: str


def ready_json(
    namesrv: str | None,
    brokers: Sequence[ReadyBroker],
    metrics: str | None,
    store: str | None,
    pid: int,
    is_testing: bool = False,
    grpc: str | None = None,
) -> str:
    """The ready line as JSON.

    @param namesrv: the name servers, C{host:port;host:port}.
    @param brokers: the brokers of this command, none for a name server alone.
    @param metrics: where metrics are.
    @param store: the directory of the broker's store.
    @param is_testing: whether anybody may move the time of the broker, and let it fail.
    @param grpc: where clients of gRPC are served.
    """
    event: dict[str, object] = {
        "event": "ready",
        "namesrv": namesrv,
        "brokers": [attrs.asdict(broker) for broker in brokers],
        "metrics": metrics,
        "grpc": grpc,
        "store": store,
        "pid": pid,
    }
    if is_testing:
        event["testing"] = True
    return json.dumps(event, separators=(",", ":"))


def reached(host: str, port: int) -> str | None:
    """Where this machine reaches what listens at C{host}; C{None} if nothing does."""
    if not port:
        return None
    return f"{advertised_address(host, LOOPBACK, ())[0]}:{port}"
