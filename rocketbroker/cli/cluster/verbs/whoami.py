# -*- test-case-name: tests.cli.cluster.verbs.test_whoami -*-
"""C{rocketbroker whoami} and C{can-i}: for whom a cluster takes us, and what it lets us
do, with the rule that decides (31012).
"""

from __future__ import annotations

from typing import Final

import click

from rocketbroker.auth.resources import ResourceType
from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.options import changing
from rocketbroker.cli.cluster.requests import access
from rocketbroker.cli.cluster.verbs.acl import ACTIONS
from rocketbroker.cli.cluster.verbs.topic import BROKER, CLUSTER
from rocketbroker.cli.exit_status import USAGE, Failure
from rocketbroker.cli.rows import Rows

#: Kinds of resources, in small letters.
KINDS: Final = {
    kind.value.lower(): kind.value
    for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
}


@click.command()
@CLUSTER
@BROKER
@changing
def whoami(
    cluster: Cluster, rows: Rows, in_cluster: str | None, broker: str | None
) -> None:
    """Show for whom each broker takes us, and which rule says so."""
    brokers = access.some_brokers(cluster, in_cluster, broker)
    for one, told in cluster.from_each(
        brokers, lambda b: access.explanation(cluster, b)
    ):
        rows.add(
            "identity",
            {
                "broker": one.name,
                "address": one.address,
                "user": told.user,
                "rule": told.rule,
                "acl": told.generation,
            },
        )


def _resource(words: tuple[str, ...]) -> str:
    """The resource of C{topic Orders}, or of C{Topic:Orders}.

    @raise Failure: it is none.
    """
    kind, _, name = " ".join(words).replace(" ", ":", 1).partition(":")
    if len(words) > 2 or kind.lower() not in KINDS or not name:
        raise Failure("A resource is topic NAME, group NAME or cluster NAME.", USAGE)
    return f"{KINDS[kind.lower()]}:{name}"


@click.command("can-i")
@click.argument("action", type=click.Choice(ACTIONS, case_sensitive=False))
@click.argument("resource", nargs=-1, required=True, metavar="topic|group|cluster NAME")
@click.option("--user", metavar="NAME", help="Somebody else; administrators may ask.")
@CLUSTER
@BROKER
@changing
def can_i(
    cluster: Cluster,
    rows: Rows,
    action: str,
    resource: tuple[str, ...],
    user: str | None,
    in_cluster: str | None,
    broker: str | None,
) -> None:
    """Ask whether we may do something: can-i pub topic Orders.

    Of each broker the rule is shown that decides. Exit status 0: all allow it.
    """
    wanted = _resource(resource)
    brokers = access.some_brokers(cluster, in_cluster, broker)
    refusing = []
    for one, told in cluster.from_each(
        brokers,
        lambda b: access.explanation(
            cluster, b, user=user, resource=wanted, action=action
        ),
    ):
        rows.add(
            "decision",
            {
                "broker": one.name,
                "address": one.address,
                "user": told.user,
                "allowed": told.is_allowed,
                "rule": told.rule,
                "remark": told.remark,
            },
        )
        if not told.is_allowed:
            refusing.append(one.name)
    if refusing:
        raise Failure(f"No: {action} of {wanted} on {', '.join(refusing)}.")
