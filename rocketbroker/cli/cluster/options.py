# -*- test-case-name: tests.cli.cluster.test_options -*-
"""Options common to all verbs, with their output, watching, confirmation and errors.

A verb that shows something is a function of a cluster and of rows to fill::

    @topic.command("ls")
    @showing
    def topic_ls(cluster: Cluster, rows: Rows) -> None:

and one that changes something the same with L{changing}, which does not watch. What
goes wrong is raised, and becomes a sentence and an exit status here.
"""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable
from typing import Any, Final, Protocol, TextIO

import click
from click.shell_completion import CompletionItem

from rocketbroker.blocking.answers import PASSING
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.cli.cluster import contexts
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.outages import ALL, Outages, echo, passes
from rocketbroker.cli.cluster.surroundings import Surroundings
from rocketbroker.cli.exit_status import (
    USAGE,
    Failure,
    broker_of,
    explained,
    is_absence,
    named,
    unanswered,
)
from rocketbroker.cli.formats import Moment, parse_moment, without_zone
from rocketbroker.cli.rows import FORMATS, Rows, flush
from rocketbroker.errors import RocketbrokerError
from rocketbroker.records.names import is_system_group, is_system_topic
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fields import Fields

#: How long a request may take, in seconds, as mqadmin's.
TIMEOUT: Final = 5.0

#: How long completion waits for a cluster, in seconds: a person waits for it.
COMPLETION_TIMEOUT: Final = 1.0

#: Where groups stand in a broker's answer, by name.
_GROUP_TABLE: Final = "subscriptionGroupTable"

#: Clears a terminal and goes to its top.
_CLEAR: Final = "\x1b[H\x1b[2J"

#: The parameters that are the decorators' own.
_OWN: Final = ("namesrv", "context", "timeout", "output", "watch", "every")

_CLUSTER: Final = [
    click.option(
        "-n",
        "--namesrv",
        metavar="HOST:PORT[;...]",
        help="Name servers. [default: ROCKETMQ_NAMESRV, NAMESRV_ADDR, the current "
        "context, 127.0.0.1:9876]",
    ),
    click.option(
        "--context", metavar="NAME", help="A cluster by its name: context set."
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0.01),
        default=TIMEOUT,
        show_default=True,
        metavar="SECONDS",
        help="How long a request may take.",
    ),
]
_OUTPUT: Final = [
    click.option(
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="For people, or for programs: sizes in bytes, times in ms.",
    ),
]
_WATCH: Final = [
    click.option("-w", "--watch", is_flag=True, help="Again and again."),
    click.option(
        "--every",
        type=click.FloatRange(min=0.1),
        default=2.0,
        show_default=True,
        metavar="SECONDS",
        help="How often, with --watch.",
    ),
]

YES: Final = click.option("--yes", is_flag=True, help="Do not ask.")
DRY_RUN: Final = click.option(
    "--dry-run", is_flag=True, help="Only say what would be done."
)


class Verb(Protocol):
    """The function of a verb; its other parameters are click's."""

    def __call__(self, cluster: Cluster, rows: Rows, /, *a: Any, **kw: Any) -> None:
        """Do it."""


def surroundings_of(context: click.Context) -> Surroundings:
    """What to run in; tests give others as the context's object."""
    given = context.find_root().obj
    return given if given is not None else Surroundings()


def cluster_of(context: click.Context, values: dict[str, Any]) -> Cluster:
    """The cluster that the options choose; nothing is opened.

    @param values: of the options, some of which may be missing in completion.
    """
    target = contexts.choose(values.get("namesrv"), values.get("context"), os.environ)
    surroundings = surroundings_of(context)
    settings = Settings(
        target.name_servers,
        seconds=values.get("timeout") or TIMEOUT,
        machine=surroundings.machine,
        patience=0.0,
        tls=target.access.tls,
        credentials=target.access.credentials or surroundings.keys,
    )
    return Cluster(Client(settings), surroundings.connect)


def run(
    function: Callable[..., None], context: click.Context, values: dict[str, Any]
) -> None:
    """Run a function with the cluster that the options choose.

    @param values: of all options and arguments; those of the cluster are taken out.
    @raise Failure: something went wrong.
    """
    chosen = {name: values.pop(name, None) for name in _OWN[:3]}
    try:
        cluster = cluster_of(context, chosen)
    except RocketbrokerError as error:
        raise explained(error) from error
    outcome: RocketbrokerError | None = None
    with cluster.client:
        try:
            function(cluster, **values)
        except RocketbrokerError as error:
            outcome = error
    outcome = cluster.outcome(outcome)
    if outcome is not None:
        raise explained(outcome, cluster.name_servers, cluster.names) from outcome


def asking(function: Callable[..., None]) -> Callable[..., None]:
    """A verb on a cluster that writes its output itself: C{function(cluster, ...)}."""

    @functools.wraps(function)
    def verb(**values: Any) -> None:
        run(function, click.get_current_context(), values)

    return _with(verb, _CLUSTER)


def changing(function: Verb) -> Callable[..., None]:
    """A verb that does something, and shows what: C{function(cluster, rows, ...)}."""

    @functools.wraps(function)
    def verb(**values: Any) -> None:
        output = values.pop("output")

        def fill(cluster: Cluster, **others: Any) -> None:
            rows = Rows(sys.stdout, output)
            try:
                function(cluster, rows, **others)
            finally:
                rows.close()

        run(fill, click.get_current_context(), values)

    return _with(verb, [*_CLUSTER, *_OUTPUT])


def showing(function: Verb) -> Callable[..., None]:
    """A verb that shows something, once or again and again."""

    @functools.wraps(function)
    def verb(**values: Any) -> None:
        output, watch = values.pop("output"), values.pop("watch")
        every = values.pop("every")

        def show(cluster: Cluster, **others: Any) -> None:
            def page(out: TextIO) -> None:
                rows = Rows(out, output)
                function(cluster, rows, **others)
                rows.close()

            if watch:
                repeat(page, cluster, output == "table", every)
            else:
                page(sys.stdout)

        run(show, click.get_current_context(), values)

    return _with(verb, [*_CLUSTER, *_OUTPUT, *_WATCH])


def _with(
    verb: Callable[..., None], options: list[Callable[[Any], Any]]
) -> Callable[..., None]:
    for option in reversed(options):
        verb = option(verb)
    return verb


def repeat(
    page: Callable[[TextIO], None], cluster: Cluster, is_table: bool, every: float
) -> None:
    """Show a page until the user interrupts.

    Servers that do not answer are told, with the time since when, and asked again. What
    is not there at the first look is an error; later it may be at a server that is
    restarted.
    """
    clear = _CLEAR if is_table and sys.stdout.isatty() else ""
    machine = cluster.client.settings.machine
    outages = Outages(machine.wall_ms)
    is_shown = False
    while True:
        text = io.StringIO()
        failure: RocketbrokerError | None = None
        cluster.unreachable.clear()
        try:
            cluster.info(refresh=True)
            page(text)
            is_shown = True
        except RocketbrokerError as error:
            if not isinstance(error, PASSING):
                is_away = bool(cluster.unreachable) and is_absence(error)
                if not is_away and not (is_shown and passes(error)):
                    raise
            failure = error
            text = io.StringIO()  # half of a page
        reasons = _reasons(cluster, failure, outages)
        sys.stdout.write(clear + text.getvalue())
        flush(sys.stdout)
        outages.tell(reasons, again=bool(clear))
        machine.sleep(every)


def _reasons(
    cluster: Cluster, failure: RocketbrokerError | None, outages: Outages
) -> dict[str, str]:
    """Which servers are away, and why.

    @param failure: why there is no page.
    @param outages: those until now: where there is no page, they may last.
    """
    reasons = {**outages.reasons} if failure is not None else {}
    reasons.pop(ALL, None)
    away = cluster.unreachable
    for name in {*cluster.names.values()} - cluster.registered:
        reasons[name] = f"{name} is not registered at the name server"
    for broker, why in away.items():
        reasons[broker.name] = unanswered(broker.name, why)
    if failure is None or failure in away.values():
        return reasons
    if not is_absence(failure) or not reasons:
        name = broker_of(failure, cluster.names)
        reasons[name] = named(failure, cluster.names)
    return reasons


def given_moment(option: str, text: str, now_ms: int) -> int:
    """The time that a user gives; without a zone it is local, which is said.

    @raise ConfigurationError: it is none.
    """
    found = parse_moment(text, now_ms)
    if without_zone(text):
        echo(f"{option} {text} is {Moment(found)}.")
    return found


def confirm(question: str, yes: bool) -> None:
    """Let the user say yes to what destroys something.

    @param question: what will be done, without a question mark.
    @param yes: the value of C{--yes}.
    @raise Failure: the answer is no, or nobody is there to give one.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"{question}? Give --yes to do it: nobody can be asked.", USAGE)
    if not click.confirm(f"{question}?", err=True):
        raise Failure("Nothing was changed.")


def report(
    rows: Rows, kind: str, name: str, broker: Broker, outcome: str, dry_run: bool
) -> None:
    """Show a change on a broker.

    @param kind: of what was changed.
    @param outcome: what was done to it, or would be done.
    """
    row = {kind: name, "broker": broker.name, "address": broker.address}
    rows.add("change", {**row, "outcome": f"to be {outcome}" if dry_run else outcome})


def complete_topics(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The topics whose names begin so; none if the cluster cannot be asked."""
    values = {**context.params, "timeout": COMPLETION_TIMEOUT}
    try:
        cluster = cluster_of(context, values)
        with cluster.client:
            names = cluster.client.topics()
    except RocketbrokerError:
        return []
    hides_others = not incomplete.startswith("%")
    return [
        CompletionItem(name)
        for name in names
        if name.startswith(incomplete)
        and not (hides_others and (name.startswith("%") or is_system_topic(name)))
    ]


def complete_groups(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The groups whose names begin so; none if the cluster cannot be asked."""
    found: set[str] = set()
    try:
        cluster = cluster_of(context, {**context.params, "timeout": COMPLETION_TIMEOUT})
        with cluster.client:
            for broker in cluster.masters():
                found |= cluster.read(
                    broker.address,
                    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
                    lambda body: set(
                        map(str, Fields(body, "groups").members(_GROUP_TABLE))
                    ),
                )
    except RocketbrokerError:
        return []
    return [
        CompletionItem(name)
        for name in sorted(found)
        if name.startswith(incomplete) and not is_system_group(name)
    ]


GROUP: Final = click.argument("group", shell_complete=complete_groups)
TOPIC: Final = click.argument("topic", shell_complete=complete_topics)
