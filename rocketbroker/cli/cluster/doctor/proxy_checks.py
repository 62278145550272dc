# -*- test-case-name: tests.cli.cluster.doctor.test_proxy_checks -*-
"""The check of proxies of C{rocketbroker doctor}: whether clients of gRPC are served.

Name servers know no proxies. So those are looked at that the command line names, or
else port 8081 of the name servers' hosts, where C{standalone} has its own. Nobody has
asked for these, so what is not there, or no proxy, is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rocketbroker.app.grpc_extra import GRPC_PORT, INSTALL, extra_problem
from rocketbroker.blocking.machine import Machine
from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.doctor.finding import OK, PROBLEM, WARNING, Finding
from rocketbroker.cli.cluster.doctor.grpc_health import Health, health_of
from rocketbroker.config.addresses import split_address
from rocketbroker.errors import ConnectionLost

#: What is said of a port, by what it has said.
WORDS: Final = {
    Health.SERVES: (OK, "serves clients of gRPC"),
    Health.SERVES_NOT: (
        PROBLEM,
        "does not serve: it drains, as it stops; is another one started?",
    ),
    Health.NOT_TOLD: (
        OK,
        "speaks gRPC, and does not tell whether it serves: RocketMQ's Proxy does not",
    ),
    Health.TLS_ONLY: (
        OK,
        "speaks TLS only (tls.server.mode=enforcing), so it was not asked whether it "
        "serves",
    ),
    Health.CLOSED: (
        PROBLEM,
        "closes its connections: no proxy can begin there, and the log says why. If "
        f"the extra is missing: {INSTALL}",
    ),
    Health.SILENT: (PROBLEM, "says nothing: is it the port of a proxy?"),
    Health.OTHER: (PROBLEM, "does not speak gRPC: is it the port of a proxy?"),
}

#: Of a port that nobody has named: something else than a proxy has it.
FOREIGN: Final = (Health.SILENT, Health.OTHER)


def of_proxies(cluster: Cluster, named: Sequence[str]) -> Iterator[Finding]:
    """Whether proxies serve.

    @param named: their addresses, as the command line has them.
    @raise ConfigurationError: one is no address.
    """
    machine, seconds = cluster.client.settings.machine, cluster.client.settings.seconds
    for host, port in map(split_address, named):
        try:
            status, words = WORDS[health_of(machine, host, port, seconds)]
        except ConnectionLost as error:
            status = PROBLEM
            words = f"{error}; docs/proxy.rst says how to start one"
        yield Finding(status, f"proxy {host}:{port}", words)
    if not named:
        hosts = dict.fromkeys(split_address(each)[0] for each in cluster.name_servers)
        for host in hosts:
            yield from of_usual_port(machine, host, seconds)


def of_usual_port(machine: Machine, host: str, seconds: float) -> Iterator[Finding]:
    """Whether there is a proxy on a host, and serves."""
    try:
        health = health_of(machine, host, GRPC_PORT, seconds)
    except ConnectionLost:
        return
    if health not in FOREIGN:
        status, words = WORDS[health]
        is_wrong = status == PROBLEM
        yield Finding(WARNING if is_wrong else OK, f"proxy {host}:{GRPC_PORT}", words)


def of_extra() -> Iterator[Finding]:
    """Whether a proxy can run on this machine; a broker does without one."""
    problem = extra_problem() or "can run here"
    yield Finding(OK, "extra grpc", f"a proxy, for clients of gRPC, {problem}")
