# -*- test-case-name: tests.cli.cluster.doctor.test_doctor -*-
"""C{rocketbroker doctor}: what is wrong with a cluster, or would be with a broker."""

from __future__ import annotations

import click

from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.doctor.cluster_checks import of_cluster
from rocketbroker.cli.cluster.doctor.finding import PROBLEM
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
@changing
def doctor(cluster: Cluster, rows: Rows, config: str | None) -> None:
    """Look for what is wrong, and say what to do.

    Name servers that disagree, addresses that clients cannot use, disks, clocks,
    settings that contradict each other, slaves that do not follow. With --config:
    settings, ports, limits and disk of this machine, before a broker is started. Exit
    status 1: there are problems.
    """
    if config is None:
        found = of_cluster(cluster)
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
