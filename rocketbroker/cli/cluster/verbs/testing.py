# -*- test-case-name: tests.cli.cluster.verbs.test_testing -*-
"""C{rocketbroker testing}: a broker's time and its faults (31010, 31011).

For brokers of C{rocketbroker standalone --testing}; others say that they do not know
these requests.
"""

from __future__ import annotations

from typing import Final

import click

from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import changing, showing
from rocketbroker.cli.exit_status import USAGE, Failure, NotThere
from rocketbroker.cli.formats import Moment, Span
from rocketbroker.cli.lazycommands import LazyCommands
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import RequestCodeNotSupported
from rocketbroker.testing import control

BROKER: Final = click.option(
    "--broker", metavar="NAME", help="Which one, if there are several."
)
OWNER: Final = click.option("--owner", metavar="NAME", help="Those of one owner.")


def _broker(cluster: Cluster, name: str | None) -> Broker:
    """The broker that is meant.

    @raise Failure: there are several.
    """
    found = cluster.masters(name=name)
    if len(found) > 1:
        names = ", ".join(broker.name for broker in found)
        raise Failure(f"There are several brokers: give --broker, of {names}.", USAGE)
    return found[0]


def _refused(broker: Broker) -> RequestCodeNotSupported:
    return RequestCodeNotSupported(
        f"{broker.name} is not in testing mode: rocketbroker standalone --testing is."
    )


@click.group(cls=LazyCommands)
def testing() -> None:
    """Brokers of standalone --testing: move their time, let them fail."""


@testing.command("time")
@click.argument("span", default="0s")
@click.option(
    "--keep-clients",
    is_flag=True,
    help="Clients that are connected have not been silent for so long.",
)
@BROKER
@changing
def testing_time(
    cluster: Cluster, rows: Rows, span: str, keep_clients: bool, broker: str | None
) -> None:
    """Move a broker's time forward by SPAN, such as +3d, 1h30m, 6s; or show it.

    What is due by then is done: delays, timers, checks of transactions, retention,
    clients that are silent. Time never goes back.
    """
    one = _broker(cluster, broker)
    try:
        found = control.advance(cluster.client, one.address, span, keep_clients)
    except RequestCodeNotSupported:
        raise _refused(one) from None
    row = {"broker": one.name, "time": Moment(found.time_ms)}
    rows.add("time", {**row, "ahead": Span(found.ahead_ms)})


@testing.group("fault", cls=LazyCommands)
def fault() -> None:
    """Faults of a broker: add rules, list them with their hits, clear them."""


@fault.command("add")
@click.argument("action")
@click.option("--topic", metavar="TOPIC", help="Requests about this topic.")
@click.option("--group", metavar="GROUP", help="Requests of this group.")
@click.option(
    "--client", "client_id", metavar="ID", help="Requests of this client, or HOST:PORT."
)
@click.option(
    "--request",
    multiple=True,
    metavar="CODE",
    help="A code or its name; or send, pull, pop, ack, heartbeat. May be given again.",
)
@click.option("--code", type=int, metavar="N", help="What is answered, for code.")
@click.option("--remark", metavar="TEXT", help="[default: RocketMQ's]")
@click.option("--ms", type=int, metavar="N", help="Wait so many milliseconds first.")
@click.option("--times", type=int, metavar="N", help="[default: without an end]")
@click.option("--owner", metavar="NAME", help="So that it can be cleared by this.")
@BROKER
@changing
def fault_add(
    cluster: Cluster,
    rows: Rows,
    action: str,
    topic: str | None,
    group: str | None,
    client_id: str | None,
    request: tuple[str, ...],
    code: int | None,
    remark: str | None,
    ms: int | None,
    times: int | None,
    owner: str | None,
    broker: str | None,
) -> None:
    """Let requests fail that fit all that is given.

    \b
    ACTION is one of:
    code           is answered with --code, and not done
    busy           is answered SYSTEM_BUSY, and not done
    delay          is done --ms later
    drop           is not done and not answered
    cut            is not done; the connection is closed
    flush_timeout  is stored, and answered FLUSH_DISK_TIMEOUT
    slave_timeout  is stored, and answered FLUSH_SLAVE_TIMEOUT
    slave_missing  is stored, and answered SLAVE_NOT_AVAILABLE
    corrupt        messages are delivered with wrong bodies
    duplicate      of a send: is stored twice; of a pull: is delivered twice
    """
    one = _broker(cluster, broker)
    try:
        number = control.add_fault(
            cluster.client,
            one.address,
            action.replace("-", "_"),
            topic=topic,
            group=group,
            client_id=client_id,
            request=request or None,
            code=code,
            remark=remark,
            ms=ms,
            times=times,
            owner=owner,
        )
    except RequestCodeNotSupported:
        raise _refused(one) from None
    rows.add("change", {"fault": number, "broker": one.name, "outcome": "added"})


@fault.command("ls")
@OWNER
@BROKER
@showing
def fault_ls(
    cluster: Cluster, rows: Rows, owner: str | None, broker: str | None
) -> None:
    """List the rules of a broker, with how many requests each has met."""
    one = _broker(cluster, broker)
    try:
        found = control.faults(cluster.client, one.address, owner=owner)
    except RequestCodeNotSupported:
        raise _refused(one) from None
    for each in found:
        requests = each.request
        rows.add(
            "fault",
            {
                "fault": each.number,
                "action": each.action,
                "hits": each.hits,
                "times": each.times,
                "topic": each.topic,
                "group": each.group,
                "client": each.client,
                "request": None if requests is None else ",".join(map(str, requests)),
                "code": each.code,
                "ms": each.ms or None,
                "owner": each.owner,
                "last": Moment(each.last[-1]["time"]) if each.last else None,
            },
        )


@fault.command("clear")
@click.argument("number", type=int, required=False)
@OWNER
@BROKER
@changing
def fault_clear(
    cluster: Cluster,
    rows: Rows,
    number: int | None,
    owner: str | None,
    broker: str | None,
) -> None:
    """Remove the rule NUMBER, or those of an owner, or all."""
    one = _broker(cluster, broker)
    try:
        count = control.clear_faults(cluster.client, one.address, number, owner)
    except RequestCodeNotSupported:
        raise _refused(one) from None
    if number is not None and not count:
        raise NotThere(f"There is no fault {number}.")
    rows.add("change", {"broker": one.name, "outcome": f"{count} removed"})
