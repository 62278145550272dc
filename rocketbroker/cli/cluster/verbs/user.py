# -*- test-case-name: tests.cli.cluster.verbs.test_user -*-
"""C{rocketbroker user}: users of ACL 2.0. Each broker has its own, slaves too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TextIO

import click

from rocketbroker.auth.entries import named
from rocketbroker.auth.policy_documents import UserInfo
from rocketbroker.auth.users import UserStatus, UserType
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import (
    DRY_RUN,
    YES,
    changing,
    confirm,
    report,
    showing,
    surroundings_of,
)
from rocketbroker.cli.cluster.requests import access
from rocketbroker.cli.cluster.secrets import given_secret
from rocketbroker.cli.cluster.verbs.topic import BROKER, CLUSTER, PATTERN
from rocketbroker.cli.exit_status import USAGE, Failure, NotThere
from rocketbroker.cli.formats import matches
from rocketbroker.cli.lazycommands import LazyCommands
from rocketbroker.cli.rows import Rows

_NAME: Final = click.argument("name")
_SECRETS: Final = click.option(
    "--show-secrets", is_flag=True, help="Passwords, too, if we may see them."
)
_TYPE: Final = click.option(
    "--type",
    "user_type",
    type=click.Choice(["super", "normal"]),
    help="A super user may do everything.",
)
_STATUS: Final = click.option(
    "--status",
    type=click.Choice(["enable", "disable"]),
    help="Who is disabled may do nothing.",
)


def _password(is_always: bool) -> Callable[[Any], Any]:
    """The option of a password, whose value is the password.

    @param is_always: whether it is asked for without the option.
    """

    def read(
        context: click.Context, parameter: click.Parameter, file: TextIO | None
    ) -> str | None:
        if context.resilient_parsing:
            return None
        given = surroundings_of(context).password
        if given is not None:
            return given
        if file is None and not (is_always or context.params.get("ask_password")):
            return None
        return given_secret(file, "Password", "--password", is_new=True)

    asked = "[default: you are asked]" if is_always else ""
    return click.option(
        "--password-file",
        "password",
        type=click.File(),
        callback=read,
        metavar="FILE",
        help=f"With the password; - is standard input. {asked}",
    )


@click.group(cls=LazyCommands)
def user() -> None:
    """Users of ACL 2.0: list, show, create, update, copy, delete."""


def of_brokers(found: list[Broker]) -> list[str]:
    """The names of brokers; slaves have their number."""
    return [f"{b.name}/{b.broker_id}" if b.broker_id else b.name for b in found]


def _row(info: UserInfo, show_secrets: bool) -> dict[str, object]:
    row: dict[str, object] = {
        "user": info.name,
        "type": info.type.value if info.type else None,
        "status": info.status.value if info.status else None,
    }
    return {**row, "password": info.password} if show_secrets else row


@user.command("ls")
@PATTERN
@CLUSTER
@BROKER
@_SECRETS
@showing
def user_ls(
    cluster: Cluster,
    rows: Rows,
    pattern: str,
    in_cluster: str | None,
    broker: str | None,
    show_secrets: bool,
) -> None:
    """List the users whose names match PATTERN, and on which brokers they are.

    A user who is not the same on all brokers has several lines.
    """
    found: dict[tuple[str, ...], list[Broker]] = {}
    kept: dict[tuple[str, ...], dict[str, object]] = {}
    brokers = access.some_brokers(cluster, in_cluster, broker)
    for one, users in cluster.from_each(brokers, lambda b: access.users(cluster, b)):
        for info in users:
            row = _row(info, show_secrets)
            key = (*map(str, row.values()),)
            found.setdefault(key, []).append(one)
            kept[key] = row
    for key in sorted(found):
        if matches(str(kept[key]["user"]), pattern):
            rows.add("user", {**kept[key], "brokers": of_brokers(found[key])})


def found_users(
    cluster: Cluster, brokers: list[Broker], name: str
) -> list[tuple[Broker, UserInfo]]:
    """A user on each broker that has it.

    @raise NotThere: none has.
    """
    answers = cluster.from_each(brokers, lambda b: access.user(cluster, b, name))
    found = [(broker, info) for broker, info in answers if info is not None]
    if not found:
        raise NotThere(f"There is no user {name}: rocketbroker user ls shows them.")
    return found


@user.command("show")
@_NAME
@CLUSTER
@BROKER
@_SECRETS
@showing
def user_show(
    cluster: Cluster,
    rows: Rows,
    name: str,
    in_cluster: str | None,
    broker: str | None,
    show_secrets: bool,
) -> None:
    """Show a user on each broker; acl show has the policies."""
    for one, info in found_users(
        cluster, access.some_brokers(cluster, in_cluster, broker), name
    ):
        place = {"broker": one.name, "address": one.address}
        rows.add("user", {**_row(info, show_secrets), **place})


def _info(
    name: str,
    password: str | None,
    user_type: str | None,
    status: str | None,
) -> UserInfo:
    return UserInfo(
        name=name,
        password=password,
        type=named(UserType, user_type),
        status=named(UserStatus, status),
    )


@user.command("create")
@_NAME
@CLUSTER
@BROKER
@_TYPE
@_STATUS
@_password(is_always=True)
@DRY_RUN
@changing
def user_create(
    cluster: Cluster,
    rows: Rows,
    name: str,
    in_cluster: str | None,
    broker: str | None,
    dry_run: bool,
    **wanted: Any,
) -> None:
    """Create a user on all brokers; it may do nothing until acl create says so.

    The password is asked for, or read from a file. It is the key of signatures.
    """
    brokers = access.some_brokers(cluster, in_cluster, broker)
    for one in brokers:
        if access.user(cluster, one, name) is not None:
            raise Failure(
                f"{name} is there already on {one.name}: rocketbroker user update "
                "changes it."
            )
    for one in brokers:
        if not dry_run:
            access.create_user(cluster, one, _info(name, **wanted))
        report(rows, "user", name, one, "created", dry_run)


@user.command("update")
@_NAME
@CLUSTER
@BROKER
@_TYPE
@_STATUS
@click.option(
    "--ask-password", is_flag=True, is_eager=True, help="Ask for a new password."
)
@_password(is_always=False)
@DRY_RUN
@changing
def user_update(
    cluster: Cluster,
    rows: Rows,
    name: str,
    in_cluster: str | None,
    broker: str | None,
    ask_password: bool,
    dry_run: bool,
    **wanted: Any,
) -> None:
    """Change what is given of a user, where the user is."""
    info = _info(name, **wanted)
    if not (info.password or info.type or info.status):
        raise Failure(
            "Give --type, --status, --ask-password or --password-file.", USAGE
        )
    brokers = access.some_brokers(cluster, in_cluster, broker)
    for one, _ in found_users(cluster, brokers, name):
        if not dry_run:
            access.update_user(cluster, one, info)
        report(rows, "user", name, one, "changed", dry_run)


@user.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@DRY_RUN
@changing
def user_copy(
    cluster: Cluster,
    rows: Rows,
    source: str,
    target: str,
    names: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Copy users, or those named, with passwords, from one broker to another.

    A broker is a name, for its master, or HOST:PORT. Only super users may do it.
    """
    giver, taker = cluster.one_broker(source), cluster.one_broker(target)
    known = {info.name: info for info in access.users(cluster, giver)}
    for name in names or [*known]:
        info = known.get(name)
        if info is None or name is None:
            raise NotThere(f"There is no user {name} on {giver.name}.")
        if info.password is None:
            raise Failure(f"{giver.name} shows passwords to super users only.")
        is_there = access.user(cluster, taker, name) is not None
        if not dry_run:
            put = access.update_user if is_there else access.create_user
            put(cluster, taker, info)
        outcome = "changed" if is_there else "created"
        report(rows, "user", name, taker, outcome, dry_run)


@user.command("delete")
@_NAME
@CLUSTER
@BROKER
@YES
@DRY_RUN
@changing
def user_delete(
    cluster: Cluster,
    rows: Rows,
    name: str,
    in_cluster: str | None,
    broker: str | None,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete a user with the policies."""
    found = found_users(cluster, access.some_brokers(cluster, in_cluster, broker), name)
    brokers = [one for one, _ in found]
    if not dry_run:
        places = ", ".join(of_brokers(brokers))
        confirm(f"Delete user {name} with the policies on {places}", yes)
    for one in brokers:
        if not dry_run:
            access.delete_user(cluster, one, name)
        report(rows, "user", name, one, "deleted", dry_run)
