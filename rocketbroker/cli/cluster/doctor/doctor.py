# -*- test-case-name: tests.cli.cluster.doctor.test_doctor -*-
"""C{rocketbroker doctor}: what is wrong with a cluster, or would be with a broker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import click

from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.doctor.access_checks import of_access
from rocketbroker.cli.cluster.doctor.cluster_checks import of_cluster
from rocketbroker.cli.cluster.doctor.finding import PROBLEM, Finding
from rocketbroker.cli.cluster.doctor.proxy_checks import of_proxies
from rocketbroker.cli.cluster.options import changing
from rocketbroker.cli.exit_status import Failure
from rocketbroker.cli.rows import Rows


@click.command()
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Check this machine for a broker with that settings file, instead.",
)
@click.option(
    "--proxy",
    "proxies",
    metavar="HOST:PORT",
    multiple=True,
    help="Look at this proxy for clients of gRPC; may be given again. "
    "[default: port 8081 of the name servers' hosts, if a proxy is there]",
)
@changing
def doctor(
    cluster: Cluster, rows: Rows, config: str | None, proxies: tuple[str, ...]
) -> None:
    """Look for what is wrong, and say what to do.

    Name servers that disagree, addresses that clients cannot use, disks, clocks,
    settings that contradict each other, slaves that do not follow, what is open to
    strangers, certificates, proxies that do not serve. With --config: settings, ports,
    limits and disk of this machine, before a broker is started. Exit status 1: there
    are problems.
    """
    found: Iterator[Finding]
    if config is None:
        found = chain(
            of_cluster(cluster), of_access(cluster), of_proxies(cluster, proxies)
        )
    else:
        from rocketbroker.cli.cluster.doctor.machine_checks import of_machine

        found = of_machine(config)
    problems = 0
    for finding in found:
        problems += finding.status == PROBLEM
        rows.add(
            "finding",
            {"status": finding.status, "of": finding.what, "found": finding.words},
        )
    cluster.unreachable.clear()
    if problems:
        raise Failure("There are problems." if problems > 1 else "There is a problem.")
