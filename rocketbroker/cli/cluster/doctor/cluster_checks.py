# -*- test-case-name: tests.cli.cluster.doctor.test_doctor -*-
"""The cluster checks of C{rocketbroker doctor}."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rocketbroker.blocking.routes import MASTER
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.doctor.access_checks import is_loopback
from rocketbroker.cli.cluster.doctor.finding import OK, PROBLEM, WARNING, Finding
from rocketbroker.cli.cluster.doctor.replica_checks import of_replicas
from rocketbroker.cli.cluster.requests import brokers
from rocketbroker.cli.exit_status import explained
from rocketbroker.cli.formats import Size, Span
from rocketbroker.errors import RequestCodeNotSupported, RocketbrokerError
from rocketbroker.wire.bodies.routes import ClusterInfo
from rocketbroker.wire.codes import RequestCode

#: Beyond it a broker cleans, and beyond the second one it refuses sends, in percent;
#: RocketMQ's numbers where nobody has set others.
DISK_WARNING: Final = 75
DISK_PROBLEM: Final = 90

#: So much that is not in the queues yet is read by nobody for a while.
MAX_BEHIND: Final = 64 << 20

#: A broker's clock may differ from ours by so many ms, half a request included.
MAX_CLOCK_MS: Final = 2000

#: The longest frame of RocketMQ's protocol.
MAX_FRAME: Final = 16 << 20

#: Settings that brokers of a cluster should share: producers and groups meet them all.
SHARED: Final = (
    "maxMessageSize",
    "messageDelayLevel",
    "autoCreateTopicEnable",
    "autoCreateSubscriptionGroup",
    "fileReservedTime",
    "flushDiskType",
)


def of_cluster(cluster: Cluster) -> Iterator[Finding]:
    """The findings of a cluster."""
    yield from of_name_servers(cluster)
    settings: dict[Broker, Mapping[str, str]] = {}
    started: dict[Broker, int] = {}
    try:
        found = cluster.brokers()
    except RocketbrokerError:
        return
    if not found:
        words = "They know no broker: is one running, with their addresses?"
        yield Finding(PROBLEM, "name servers", words)
    for broker in found:
        what = f"{broker.name} {broker.address}"
        try:
            info = brokers.runtime_info(cluster, broker)
            settings[broker] = brokers.settings(cluster, broker)
        except RocketbrokerError as error:
            reason = explained(error, cluster.name_servers).message
            yield Finding(PROBLEM, what, reason)
            continue
        started[broker] = brokers.number(info, "bootTimestamp") or 0
        yield Finding(OK, what, f"answers; {info.get('brokerVersionDesc', 'unknown')}")
        yield from of_address(cluster, broker)
        yield from of_state(what, info)
        yield from of_clock(cluster, broker, what)
        masters = sum(each.broker_id == MASTER for each in found)
        yield from of_settings(what, settings[broker], masters)
    yield from of_differences(settings)
    yield from of_replicas(cluster, settings, started)


def of_name_servers(cluster: Cluster) -> Iterator[Finding]:
    """Whether they answer, and know the same brokers."""
    known: dict[str, frozenset[tuple[str, str]]] = {}
    for server in cluster.name_servers:
        try:
            info = cluster.read(
                server, RequestCode.GET_BROKER_CLUSTER_INFO, ClusterInfo.from_json
            )
        except RocketbrokerError as error:
            reason = explained(error, cluster.name_servers).message
            yield Finding(PROBLEM, f"name server {server}", reason)
            continue
        known[server] = frozenset(
            (data.broker_name, address)
            for data in info.broker_addr_table.values()
            for address in data.broker_addrs.values()
        )
        yield Finding(
            OK, f"name server {server}", f"knows {len(known[server])} brokers"
        )
    everything = frozenset().union(*known.values())
    for server, there in known.items():
        for name, address in sorted(everything - there):
            yield Finding(
                PROBLEM,
                f"name server {server}",
                f"does not know {name} at {address}, as others do: is this name server "
                "in the broker's namesrvAddr, and reachable from there?",
            )


def of_address(cluster: Cluster, broker: Broker) -> Iterator[Finding]:
    """Whether clients can use the address that they are told."""
    is_local = all(is_loopback(server) for server in cluster.name_servers)
    if is_loopback(broker.address) and not is_local:
        yield Finding(
            PROBLEM,
            f"{broker.name} {broker.address}",
            "clients are told an address that only its own machine reaches: set "
            "brokerIP1, or standalone --advertise",
        )


def of_state(what: str, info: Mapping[str, str]) -> Iterator[Finding]:
    """The store, its disk, and what waits.

    A rocketbroker says itself whether it stores messages, as at /healthz; of another
    broker that is known by how full its disk is.
    """
    refusal = info.get("storeRefusal", "")
    if refusal:
        words = f"it stores no messages: {refusal}"
        yield Finding(PROBLEM, what, words)
    if info.get("problems"):
        yield Finding(WARNING, what, info["problems"])
    used = brokers.used_percent(info)
    if used is not None and used >= DISK_WARNING and not refusal:
        is_ours = "runningFlags" in info
        at = "" if is_ours else f"; sends are refused at {DISK_PROBLEM} %"
        status = PROBLEM if used >= DISK_PROBLEM and not is_ours else WARNING
        yield Finding(
            status,
            what,
            f"its disk is {used} % full{at}: keep messages for a shorter time "
            "(fileReservedTime), or give it more room",
        )
    behind = brokers.number(info, "dispatchBehindBytes") or 0
    if behind > MAX_BEHIND:
        words = f"{Size(behind)} are not in the queues yet: consumers do not see them"
        yield Finding(WARNING, what, words)


def of_clock(cluster: Cluster, broker: Broker, what: str) -> Iterator[Finding]:
    """Whether its clock is ours; only a rocketbroker says it."""
    try:
        rows = brokers.services(cluster, broker)
    except RequestCodeNotSupported:
        return
    now = cluster.client.settings.machine.wall_ms()
    last = max((row.get("lastRunTimestamp", 0) for row in rows), default=0)
    if last and abs(now - last) > MAX_CLOCK_MS:
        words = f"its clock is {Span(last - now)} off ours: synchronise both"
        yield Finding(PROBLEM, what, words)


def of_settings(
    what: str, settings: Mapping[str, str], master_count: int
) -> Iterator[Finding]:
    """Settings that contradict each other, or surprise."""

    def number(key: str, default: int) -> int:
        text = settings.get(key, "")
        return int(text) if text.isdecimal() else default

    if settings.get("brokerPermission", "6") != "6":
        words = f"brokerPermission={settings['brokerPermission']}: not for all clients"
        yield Finding(WARNING, what, words)
    if number("maxMessageSize", 0) > MAX_FRAME:
        words = "maxMessageSize is beyond the longest frame (16 MiB) of the protocol"
        yield Finding(PROBLEM, what, words)
    if number("diskMaxUsedSpaceRatio", 75) >= number("diskSpaceWarningLevelRatio", 90):
        yield Finding(
            WARNING,
            what,
            "diskMaxUsedSpaceRatio is not below diskSpaceWarningLevelRatio: sends are "
            "refused before old files are removed for want of space",
        )
    if settings.get("flushDiskType") == "SYNC_FLUSH":
        timeout = number("syncFlushTimeout", 5000)
        if timeout > 3000:
            yield Finding(
                WARNING,
                what,
                f"syncFlushTimeout={timeout}: producers wait 3 s unless told otherwise "
                "and send again what may be stored",
            )
    if settings.get("autoCreateTopicEnable") == "true" and master_count > 1:
        yield Finding(
            WARNING,
            what,
            "autoCreateTopicEnable: a topic that a send creates is on one broker only",
        )
    if settings.get("messageIndexEnable") == "false":
        words = "messageIndexEnable=false: no message is found by its key"
        yield Finding(WARNING, what, words)


def of_differences(
    settings: Mapping[Broker, Mapping[str, str]],
) -> Iterator[Finding]:
    """Settings in which the masters of a cluster differ."""
    clusters: dict[str, list[tuple[str, Mapping[str, str]]]] = {}
    for broker, values in settings.items():
        if broker.broker_id == MASTER:
            clusters.setdefault(broker.cluster, []).append((broker.name, values))
    for cluster, members in clusters.items():
        for key in SHARED:
            by_value: dict[str, list[str]] = {}
            for name, values in members:
                if key in values:
                    by_value.setdefault(values[key], []).append(name)
            if len(by_value) > 1:
                yield Finding(WARNING, cluster, f"{key} differs: {listed(by_value)}")


def listed(by_value: Mapping[str, Sequence[str]]) -> str:
    """Which brokers have which value."""
    return "; ".join(f"{v} on {', '.join(names)}" for v, names in by_value.items())
