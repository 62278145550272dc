# -*- test-case-name: tests.cli.cluster.verbs.test_broker -*-
"""Requests about brokers (25, 26, 28, 907, 908, 31002), and what their answers hold.

See C{docs/facts/admin.md} 2.4 and 4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.exit_status import USAGE, Failure
from rocketbroker.cli.formats import Moment, Size
from rocketbroker.errors import NoPermission, RequestCodeNotSupported
from rocketbroker.wire.bodies.replicas import HARuntimeInfo
from rocketbroker.wire.bodies.topics import KVTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.namesrv import ResetMasterFlushOffsetHeader


def runtime_info(cluster: Cluster, broker: Broker) -> dict[str, str]:
    """What a broker says about its work, by RocketMQ's names."""
    table = cluster.read(
        broker.address, RequestCode.GET_BROKER_RUNTIME_INFO, KVTable.from_json
    )
    return table.table


def settings(cluster: Cluster, broker: Broker) -> dict[str, str]:
    """The settings in force."""
    answer = cluster.ask(broker.address, RequestCode.GET_BROKER_CONFIG)
    return parse_properties(answer.body.decode("utf-8", "replace"))


def change_settings(
    cluster: Cluster, broker: Broker, changes: Mapping[str, str]
) -> None:
    """Change settings of a running broker.

    RocketMQ ignores those that it does not know, without a word.

    @raise NoPermission: one may not be changed so.
    """
    text = "".join(f"{name}={value}\n" for name, value in changes.items())
    cluster.ask(broker.address, RequestCode.UPDATE_BROKER_CONFIG, body=text.encode())


def services(cluster: Cluster, broker: Broker) -> list[dict[str, Any]]:
    """What a rocketbroker does again and again (31002), as its rows say.

    @raise RequestCodeNotSupported: it is RocketMQ's.
    """
    answer = cluster.ask(broker.address, RequestCode.GET_SERVICES)
    found: list[dict[str, Any]] = json.loads(answer.body)["services"]
    return found


def replication(cluster: Cluster, broker: Broker) -> HARuntimeInfo | None:
    """How replication is (907); None: it does not say, as RocketMQ's of before 5.0, or
    as one that has a secret (haSecretFile) and an admin port for this."""
    try:
        return cluster.read(
            broker.address,
            RequestCode.GET_BROKER_HA_STATUS,
            HARuntimeInfo.from_json,
        )
    except (RequestCodeNotSupported, NoPermission):
        return None


def reset_master_flush_offset(cluster: Cluster, broker: Broker, offset: int) -> None:
    """Tell a slave where its master's log ended when the master started (908)."""
    header = ResetMasterFlushOffsetHeader(master_flush_offset=offset)
    cluster.ask(broker.address, RequestCode.RESET_MASTER_FLUSH_OFFSET, header)


def parse_changes(texts: Iterable[str]) -> dict[str, str]:
    """Settings that a user gives as C{NAME=VALUE}.

    @raise Failure: one is something else.
    """
    wanted = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Failure(f"{text!r} is no setting: give NAME=VALUE.", USAGE)
        wanted[name] = value
    return wanted


def parse_properties(text: str) -> dict[str, str]:
    """Names and values of C{name=value} lines."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def is_before_5(info: Mapping[str, str]) -> bool:
    """Whether a broker is of a version before 5.0, by its runtime info."""
    return info.get("brokerVersionDesc", "").upper().startswith(("V3_", "V4_"))


def number(info: Mapping[str, str], name: str) -> int | None:
    """A whole number of the runtime info; None if it is missing or none."""
    try:
        return int(info[name])
    except (KeyError, ValueError):
        return None


def rate(info: Mapping[str, str], *names: str) -> float | None:
    """The rate over the last 10 s: the first of three numbers, under one of names."""
    for name in names:
        words = info.get(name, "").split()
        try:
            return round(float(words[0]), 1)
        except (IndexError, ValueError):
            continue
    return None


def difference(info: Mapping[str, str], name: str, less: str) -> int | None:
    """One number less another; None if one is missing."""
    first, second = number(info, name), number(info, less)
    return None if first is None or second is None else first - second


def used_percent(info: Mapping[str, str]) -> int | None:
    """How full the fullest disk of the commit log is, in percent."""
    ratios = []
    for name, value in info.items():
        if name.startswith(("commitLogDiskRatio", "consumeQueueDiskRatio")):
            try:
                ratios.append(float(value))
            except ValueError:
                continue
    return round(100 * max(ratios)) if ratios and max(ratios) >= 0 else None


def summary(info: Mapping[str, str]) -> dict[str, object]:
    """What people want to know first of a broker.

    C{version} is that of RocketMQ which it is or is like, C{rocketbroker} our own if it
    is one; C{in} and C{out} are messages a second; C{today} since midnight.
    """
    behind = number(info, "dispatchBehindBytes")
    stored = difference(info, "commitLogMaxOffset", "commitLogMinOffset")
    return {
        "version": info.get("brokerVersionDesc"),
        "rocketbroker": info.get("rocketbrokerVersion"),
        "in": rate(info, "putTps"),
        "out": rate(info, "getTransferredTps", "getTransferedTps"),
        "in_today": difference(info, "msgPutTotalTodayNow", "msgPutTotalTodayMorning"),
        "out_today": difference(info, "msgGetTotalTodayNow", "msgGetTotalTodayMorning"),
        "log": None if stored is None else Size(stored),
        "disk_percent": used_percent(info),
        "behind": None if behind is None else Size(behind),
        "started": Moment(number(info, "bootTimestamp") or 0),
    }
