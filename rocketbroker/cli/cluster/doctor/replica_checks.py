# -*- test-case-name: tests.cli.cluster.doctor.test_replica_checks -*-
"""The checks of masters and slaves of C{rocketbroker doctor}."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rocketbroker.blocking.routes import MASTER
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.doctor.finding import OK, PROBLEM, WARNING, Finding
from rocketbroker.cli.cluster.requests import brokers
from rocketbroker.cli.formats import Size, Span
from rocketbroker.wire.bodies.replicas import HARuntimeInfo

#: A slave hears its master each 5 s (haSendHeartbeatInterval), and has lost it after
#: 20 s (haHousekeepingInterval).
MAX_SILENCE_MS: Final = 20_000

#: A broker that was started less than so many ms ago may still be about to find its
#: master, or its slaves.
NEW_MS: Final = 20_000

#: Of a slave's link: it gets its master's log, or waits for more of it.
TRANSFER: Final = "TRANSFER"

#: Where it is written down what to do.
_PAGE: Final = "docs/replication.rst"


def of_replicas(
    cluster: Cluster,
    settings: Mapping[Broker, Mapping[str, str]],
    started: Mapping[Broker, int],
) -> Iterator[Finding]:
    """Masters and slaves, each and beside each other.

    @param settings: the settings in force of each broker that answers.
    @param started: when each of them was started, as it says, in ms.
    """
    yield from of_groups(settings)
    now = cluster.client.settings.machine.wall_ms()
    new = {
        (broker.cluster, broker.name)
        for broker, at in started.items()
        if 0 <= now - at < NEW_MS
    }
    for broker, values in settings.items():
        what = f"{broker.name} {broker.address}"
        info = brokers.replication(cluster, broker)
        if info is None:
            yield from of_silent(what, values)
            continue
        is_new = (broker.cluster, broker.name) in new
        if broker.broker_id == MASTER:
            yield from of_master(what, info, values, is_new)
        else:
            yield from of_slave(what, info, now, is_new)


def of_silent(what: str, settings: Mapping[str, str]) -> Iterator[Finding]:
    """A broker that does not say how replication is."""
    if settings.get("haSecretFile"):
        words = (
            "says how replication is at its admin port only (haSecretFile, "
            "rocketbrokerAdminPort): mqadmin haStatus -b HOST:PORT"
        )
        yield Finding(WARNING, what, words)


def of_groups(settings: Mapping[Broker, Mapping[str, str]]) -> Iterator[Finding]:
    """Brokers of one name: whether one is the master, and the others fit it."""
    groups: dict[tuple[str, str], dict[Broker, Mapping[str, str]]] = {}
    for broker, values in settings.items():
        groups.setdefault((broker.cluster, broker.name), {})[broker] = values
    for (_, name), members in groups.items():
        if all(broker.broker_id != MASTER for broker in members):
            words = (
                "has no master: it can be read, and takes no messages; start the "
                f"master, or make a slave the master ({_PAGE})"
            )
            yield Finding(PROBLEM, name, words)
        sizes = {values.get("mappedFileSizeCommitLog") for values in members.values()}
        if len(sizes - {None}) > 1:
            words = (
                "mappedFileSizeCommitLog is not the same on master and slaves: a slave "
                "cannot store the log"
            )
            yield Finding(PROBLEM, name, words)


def of_master(
    what: str, info: HARuntimeInfo, settings: Mapping[str, str], is_new: bool = False
) -> Iterator[Finding]:
    """Whether a master has the slaves that its settings ask for.

    @param is_new: whether it, or one of its slaves, has just been started.
    """
    slaves = info.ha_connection_info
    for slave in slaves:
        if slave.problem:
            yield Finding(PROBLEM, what, slave.problem)
        elif not slave.in_sync:
            words = f"its slave {slave.addr} is {Size(slave.diff)} behind"
            yield Finding(WARNING, what, words)
    if settings.get("brokerRole") != "SYNC_MASTER":
        return
    text = settings.get("inSyncReplicas", "1")
    wanted = int(text) if text.isdecimal() else 1
    if wanted <= 1:
        words = (
            f"SYNC_MASTER with inSyncReplicas={text} waits for no slave: set 2, or "
            "ASYNC_MASTER"
        )
        yield Finding(WARNING, what, words)
    elif info.in_sync_slave_nums + 1 < wanted:
        words = (
            f"its sends wait for {wanted} copies (inSyncReplicas), and slaves in sync: "
            f"{info.in_sync_slave_nums}; they are answered FLUSH_SLAVE_TIMEOUT"
        )
        yield missing(what, words, is_new)
    else:
        words = f"slaves in sync: {info.in_sync_slave_nums}"
        yield Finding(OK, what, words)


def of_slave(
    what: str, info: HARuntimeInfo, now_ms: int, is_new: bool = False
) -> Iterator[Finding]:
    """Whether a slave follows its master.

    @param is_new: whether it, or its master, has just been started.
    """
    link = info.ha_client_runtime_info
    silent = now_ms - link.last_read_timestamp
    if link.problem:
        yield Finding(PROBLEM, what, link.problem)
    elif not link.master_addr:
        words = (
            "knows no master to follow: is it up, of the same brokerName and cluster, "
            "and at the same name servers?"
        )
        yield missing(what, words, is_new)
    elif not link.last_read_timestamp and link.state == TRANSFER:
        # The connection is new: nothing was to be said on it yet.
        yield Finding(OK, what, f"follows {link.master_addr}")
    elif silent > MAX_SILENCE_MS:
        since = f"for {Span(silent)}" if link.last_read_timestamp else "at all"
        words = (
            f"has not heard its master {link.master_addr} {since}: is it up, and "
            "reachable from there at that address (brokerIP2, haListenPort)?"
        )
        yield missing(what, words, is_new)
    else:
        yield Finding(OK, what, f"follows {link.master_addr}")


def missing(what: str, words: str, is_new: bool) -> Finding:
    """Somebody is not there: a problem, unless it may be there in a moment."""
    if is_new:
        return Finding(WARNING, what, f"was started just now, and {words}")
    return Finding(PROBLEM, what, words)
