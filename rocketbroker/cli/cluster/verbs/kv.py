# -*- test-case-name: tests.cli.cluster.verbs.test_kv -*-
"""C{rocketbroker kv}: key-value settings of name servers (100, 101, 102, 219)."""

from __future__ import annotations

from typing import Final

import click

from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.options import YES, changing, confirm, showing
from rocketbroker.cli.lazycommands import LazyCommands
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import QueryNotFound
from rocketbroker.wire.bodies.topics import KVTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fields import object_of
from rocketbroker.wire.headers.namesrv import (
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
)

NAMESPACE: Final = click.argument("namespace")


@click.group(cls=LazyCommands)
def kv() -> None:
    """Key-value settings of name servers: list, get, set, delete."""


@kv.command("ls")
@NAMESPACE
@showing
def kv_ls(cluster: Cluster, rows: Rows, namespace: str) -> None:
    """List the keys of a namespace; ORDER_TOPIC_CONFIG has the ordered topics."""
    header = GetKVListByNamespaceRequestHeader(namespace=namespace)
    try:
        answer = cluster.ask_name_server(RequestCode.GET_KVLIST_BY_NAMESPACE, header)
    except QueryNotFound:
        raise QueryNotFound(f"There is no namespace {namespace}.") from None
    table = object_of(answer.body or b"{}", KVTable.from_json)
    for key, value in sorted(table.table.items()):
        rows.add("pair", {"key": key, "value": value})


@kv.command("get")
@NAMESPACE
@click.argument("key")
@showing
def kv_get(cluster: Cluster, rows: Rows, namespace: str, key: str) -> None:
    """Show the value of a key."""
    rows.line("pair", {"value": _value(cluster, namespace, key)})


def _value(cluster: Cluster, namespace: str, key: str) -> str | None:
    """The value of a key.

    @raise QueryNotFound: there is no such key.
    """
    header = GetKVConfigRequestHeader(namespace=namespace, key=key)
    try:
        answer = cluster.ask_name_server(RequestCode.GET_KV_CONFIG, header)
    except QueryNotFound:
        raise QueryNotFound(f"There is no {key} in {namespace}.") from None
    return GetKVConfigResponseHeader.from_ext(answer.ext).value


@kv.command("set")
@NAMESPACE
@click.argument("key")
@click.argument("value")
@changing
def kv_set(cluster: Cluster, rows: Rows, namespace: str, key: str, value: str) -> None:
    """Set a key on all name servers."""
    header = PutKVConfigRequestHeader(namespace=namespace, key=key, value=value)
    for server in cluster.name_servers:
        cluster.ask(server, RequestCode.PUT_KV_CONFIG, header)
        rows.add("change", {"key": key, "server": server, "outcome": "set"})


@kv.command("delete")
@NAMESPACE
@click.argument("key")
@YES
@changing
def kv_delete(
    cluster: Cluster, rows: Rows, namespace: str, key: str, yes: bool
) -> None:
    """Delete a key on all name servers."""
    _value(cluster, namespace, key)
    confirm(f"Delete {key} from {namespace}", yes)
    header = DeleteKVConfigRequestHeader(namespace=namespace, key=key)
    for server in cluster.name_servers:
        cluster.ask(server, RequestCode.DELETE_KV_CONFIG, header)
        rows.add("change", {"key": key, "server": server, "outcome": "deleted"})
