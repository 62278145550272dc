# -*- test-case-name: tests.cli.cluster.verbs.test_acl -*-
"""C{rocketbroker acl}: what users of ACL 2.0 may do. Each broker has its own policies.

A resource is C{Topic:Orders}, C{Group:bill*}, C{Cluster:*}, or C{*} for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import click

from rocketbroker.auth.entries import Action, Effect, PolicyType, is_source, named
from rocketbroker.auth.policy_documents import AclInfo, EntryInfo, PolicyInfo
from rocketbroker.auth.resources import Resource
from rocketbroker.auth.users import SUBJECT_PREFIX, name_of
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import (
    DRY_RUN,
    YES,
    changing,
    confirm,
    report,
    showing,
)
from rocketbroker.cli.cluster.requests import access
from rocketbroker.cli.cluster.verbs.topic import BROKER, CLUSTER, PATTERN
from rocketbroker.cli.cluster.verbs.user import found_users, of_brokers
from rocketbroker.cli.exit_status import USAGE, Failure, NotThere
from rocketbroker.cli.formats import matches
from rocketbroker.cli.lazycommands import LazyCommands
from rocketbroker.cli.rows import Rows

#: What an entry may be about.
ACTIONS: Final = [
    each.value for each in Action if each not in (Action.UNKNOWN, Action.ANY)
]

_USER: Final = click.argument("user")
_DEFAULT: Final = click.option(
    "--default", "is_default", is_flag=True, help="Asked where no other entry fits."
)
_ALLOW: Final = click.option(
    "--allow/--deny", "is_allowed", default=None, help="[default: allow]"
)


def _resource(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> Resource | None:
    """A resource. A broker would take away all where it is asked to delete none."""
    found = None if text is None else Resource.parse(text)
    if text is not None and found is None:
        raise click.BadParameter(
            f"{text!r} is no resource: give Topic:NAME, Group:NAME, Cluster:NAME, with "
            "a star behind the beginning of a name, or *."
        )
    return found


def _actions(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[Action, ...]:
    """Actions, separated by commas."""
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    found = [named(Action, word) for word in words]
    for word, action in zip(words, found, strict=True):
        if action is None or action.value not in ACTIONS:
            known = ", ".join(ACTIONS)
            raise click.BadParameter(f"{word!r} is no action; there are {known}.")
    return tuple(action for action in found if action is not None)


def _sources(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[str, ...]:
    """Addresses of clients, and networks."""
    for text in texts:
        if not is_source(text):
            raise click.BadParameter(f"{text!r} is no address, and no network.")
    return texts


_RESOURCE: Final = click.argument("resource", callback=_resource)
_ACTIONS: Final = click.option(
    "--actions",
    callback=_actions,
    metavar="pub,sub,...",
    help=f"Of {', '.join(ACTIONS)}; separated by commas.",
)
_FROM: Final = click.option(
    "--from",
    "sources",
    multiple=True,
    callback=_sources,
    metavar="ADDRESS",
    help="Only for clients there, as 10.0.0.0/8; may be given again.",
)


@click.group(cls=LazyCommands)
def acl() -> None:
    """Policies of users (ACL 2.0): list, show, create, update, copy, delete."""


def _entries(info: AclInfo) -> Iterator[tuple[PolicyType, EntryInfo]]:
    for policy in info.policies:
        for entry in policy.entries:
            yield policy.type, entry


def _row(kind: PolicyType, entry: EntryInfo) -> dict[str, object]:
    return {
        "policy": kind.value,
        "resource": str(entry.resource),
        "actions": [action.value for action in entry.actions],
        "from": [*entry.sources],
        "decision": entry.effect.value if entry.effect else None,
    }


def _show(rows: Rows, answers: Sequence[tuple[Broker, AclInfo]]) -> None:
    """The entries of brokers; those that several have stand once."""
    found: dict[str, tuple[dict[str, object], list[Broker]]] = {}
    for broker, info in answers:
        for kind, entry in _entries(info):
            row = {"user": name_of(info.subject), **_row(kind, entry)}
            found.setdefault(repr(row), (row, []))[1].append(broker)
    for row, brokers in found.values():
        rows.add("entry", {**row, "brokers": of_brokers(brokers)})


@acl.command("ls")
@PATTERN
@CLUSTER
@BROKER
@click.option(
    "--resource", "part", default="", metavar="TEXT", help="Only those with TEXT in it."
)
@showing
def acl_ls(
    cluster: Cluster,
    rows: Rows,
    pattern: str,
    in_cluster: str | None,
    broker: str | None,
    part: str,
) -> None:
    """List what the users may do whose names match PATTERN, and on which brokers."""
    brokers = access.some_brokers(cluster, in_cluster, broker)
    answers = [
        (one, _about(info, part))
        for one, infos in cluster.from_each(brokers, lambda b: access.acls(cluster, b))
        for info in infos
        if matches(name_of(info.subject) or "", pattern)
    ]
    _show(rows, sorted(answers, key=lambda pair: pair[1].subject or ""))


def _about(info: AclInfo, part: str) -> AclInfo:
    """The entries about resources with a text."""
    policies = [
        attrs.evolve(
            policy, entries=[e for e in policy.entries if part in str(e.resource)]
        )
        for policy in info.policies
    ]
    return attrs.evolve(info, policies=policies)


@acl.command("show")
@_USER
@CLUSTER
@BROKER
@showing
def acl_show(
    cluster: Cluster, rows: Rows, user: str, in_cluster: str | None, broker: str | None
) -> None:
    """Show what a user may do."""
    brokers = [
        one
        for one, _ in found_users(
            cluster, access.some_brokers(cluster, in_cluster, broker), user
        )
    ]
    answers = cluster.from_each(brokers, lambda b: access.acl(cluster, b, user))
    found = [(one, info) for one, info in answers if info is not None]
    if not found:
        raise NotThere(
            f"{user} has no policies: rocketbroker acl create makes one. Super users "
            "need none."
        )
    _show(rows, found)


def _entry_of(
    info: AclInfo | None, kind: PolicyType, resource: Resource
) -> EntryInfo | None:
    """The entry about a resource."""
    for policy_type, entry in _entries(info) if info is not None else ():
        if policy_type is kind and entry.resource == resource:
            return entry
    return None


def _acl(user: str, kind: PolicyType, entry: EntryInfo) -> AclInfo:
    policy = PolicyInfo(type=kind, entries=[entry])
    return AclInfo(subject=SUBJECT_PREFIX + user, policies=[policy])


def _kind(is_default: bool) -> PolicyType:
    return PolicyType.DEFAULT if is_default else PolicyType.CUSTOM


@acl.command("create")
@_USER
@_RESOURCE
@CLUSTER
@BROKER
@_ACTIONS
@_FROM
@_ALLOW
@_DEFAULT
@DRY_RUN
@changing
def acl_create(
    cluster: Cluster,
    rows: Rows,
    user: str,
    resource: Resource,
    in_cluster: str | None,
    broker: str | None,
    actions: tuple[Action, ...],
    sources: tuple[str, ...],
    is_allowed: bool | None,
    is_default: bool,
    dry_run: bool,
) -> None:
    """Let a user do something with a RESOURCE, or forbid it, on all brokers.

    RESOURCE is Topic:Orders, Group:bill*, Cluster:*, or * for all.
    """
    if not actions:
        raise Failure("--actions is needed, as pub,sub.", USAGE)
    kind = _kind(is_default)
    effect = Effect.DENY if is_allowed is False else Effect.ALLOW
    entry = EntryInfo(
        resource=resource, actions=actions, sources=sources, effect=effect
    )
    brokers = access.some_brokers(cluster, in_cluster, broker)
    for one in brokers:
        if _entry_of(access.acl(cluster, one, user), kind, resource) is not None:
            raise Failure(
                f"{user} has an entry about {resource} already on {one.name}: "
                "rocketbroker acl update changes it."
            )
    for one in brokers:
        if not dry_run:
            access.put_acl(cluster, one, _acl(user, kind, entry))
        report(rows, "user", user, one, f"{resource} created", dry_run)


@acl.command("update")
@_USER
@_RESOURCE
@CLUSTER
@BROKER
@_ACTIONS
@_FROM
@click.option("--from-anywhere", is_flag=True, help="For all clients again.")
@_ALLOW
@_DEFAULT
@click.option("--create", "or_create", is_flag=True, help="Make it if it is not there.")
@DRY_RUN
@changing
def acl_update(
    cluster: Cluster,
    rows: Rows,
    user: str,
    resource: Resource,
    in_cluster: str | None,
    broker: str | None,
    is_default: bool,
    or_create: bool,
    dry_run: bool,
    **wanted: Any,
) -> None:
    """Change what is given of a user's entry about a RESOURCE, where it is."""
    kind = _kind(is_default)
    is_there = False
    for one in access.some_brokers(cluster, in_cluster, broker):
        before = _entry_of(access.acl(cluster, one, user), kind, resource)
        if before is None and not or_create:
            continue
        is_there = True
        entry = _changed(before, resource, **wanted)
        if not dry_run:
            access.put_acl(cluster, one, _acl(user, kind, entry))
        outcome = "created" if before is None else "changed"
        report(rows, "user", user, one, f"{resource} {outcome}", dry_run)
    if not is_there:
        raise NotThere(
            f"{user} has no entry about {resource}: rocketbroker acl create makes one."
        )


def _changed(
    before: EntryInfo | None,
    resource: Resource,
    actions: tuple[Action, ...],
    sources: tuple[str, ...],
    from_anywhere: bool,
    is_allowed: bool | None,
) -> EntryInfo:
    """An entry with what was given on the command line.

    @raise Failure: it is new, and has no actions.
    """
    if before is None:
        if not actions:
            raise Failure("--actions is needed, as pub,sub.", USAGE)
        before = EntryInfo(
            resource=resource, actions=(), sources=(), effect=Effect.ALLOW
        )
    if actions:
        before = attrs.evolve(before, actions=actions)
    if sources or from_anywhere:
        before = attrs.evolve(before, sources=sources)
    if is_allowed is not None:
        effect = Effect.ALLOW if is_allowed else Effect.DENY
        before = attrs.evolve(before, effect=effect)
    return before


@acl.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("users", metavar="[USER]...", nargs=-1)
@DRY_RUN
@changing
def acl_copy(
    cluster: Cluster,
    rows: Rows,
    source: str,
    target: str,
    users: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Copy policies of all users, or of those named, from one broker to another.

    A broker is a name, for its master, or HOST:PORT. Entries about other resources
    stay.
    """
    giver, taker = cluster.one_broker(source), cluster.one_broker(target)
    known = {name_of(info.subject): info for info in access.acls(cluster, giver)}
    for user in users or [*known]:
        info = known.get(user)
        if info is None or user is None:
            raise NotThere(f"{user} has no policies on {giver.name}.")
        if not dry_run:
            access.put_acl(cluster, taker, info)
        report(rows, "user", user, taker, "copied", dry_run)


@acl.command("delete")
@_USER
@click.argument("resource", required=False, callback=_resource)
@CLUSTER
@BROKER
@_DEFAULT
@YES
@DRY_RUN
@changing
def acl_delete(
    cluster: Cluster,
    rows: Rows,
    user: str,
    resource: Resource | None,
    in_cluster: str | None,
    broker: str | None,
    is_default: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete a user's entry about a RESOURCE, or all policies of the user."""
    kind = _kind(is_default)
    answers = cluster.from_each(
        access.some_brokers(cluster, in_cluster, broker),
        lambda b: access.acl(cluster, b, user),
    )
    brokers = [
        one
        for one, info in answers
        if info is not None
        and (resource is None or _entry_of(info, kind, resource) is not None)
    ]
    what = f"the entry about {resource}" if resource else "all policies"
    if not brokers:
        raise NotThere(f"{user} has none of it: {what}.")
    if not dry_run:
        confirm(f"Delete {what} of {user} on {', '.join(of_brokers(brokers))}", yes)
    for one in brokers:
        if not dry_run:
            text = str(resource) if resource else None
            access.delete_acl(cluster, one, user, kind.value, text)
        report(rows, "user", user, one, f"{resource or 'policies'} deleted", dry_run)
