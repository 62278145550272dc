# -*- test-case-name: tests.cli.cluster.doctor.test_doctor -*-
"""C{rocketbroker doctor --config FILE}: would a broker run well on this machine?"""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator

from rocketbroker.cli.cluster.doctor.access_checks import is_loopback
from rocketbroker.cli.cluster.doctor.cluster_checks import (
    DISK_WARNING,
    of_settings,
)
from rocketbroker.cli.cluster.doctor.finding import OK, PROBLEM, WARNING, Finding
from rocketbroker.cli.cluster.doctor.proxy_checks import of_extra
from rocketbroker.config import properties
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.effects import ignored
from rocketbroker.config.keyed import did_you_mean
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ConfigurationError
from rocketbroker.files.disk import Disk
from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.disk_usage import DiskUsage
from rocketbroker.store.running_flags import DISK_FULL, RunningFlags

#: With fewer descriptors a few hundred clients are too many.
MIN_DESCRIPTORS = 4096

#: Where the log is, if it is not in the root.
LOG_KEY = "storePathCommitLog"


def of_machine(path: str) -> Iterator[Finding]:
    """The findings of a settings file, on this machine."""
    try:
        given = properties.read(path)
        settings = BrokerSettings.from_properties(given, path)
    except ConfigurationError as error:
        yield Finding(PROBLEM, path, str(error))
        return
    yield Finding(OK, path, f"{len(given)} settings")
    known = [key for part in settings.parts() for key in part.keys()]  # noqa: SIM118
    for key in sorted(settings.unknown):
        hint = did_you_mean(key, known) or " Is it misspelt?"
        yield Finding(WARNING, path, f"{key} is not known.{hint}")
    without = ignored(settings.given, settings.parts())
    if without:
        yield Finding(WARNING, path, f"without effect here: {', '.join(without)}")
    yield from of_settings(path, given, 1)
    yield from of_told_address(settings)
    yield from of_ports(settings)
    yield from of_limits()
    yield from of_disk(settings.store, Disk())
    yield from of_extra()


def of_told_address(settings: BrokerSettings) -> Iterator[Finding]:
    """The address that clients will be told."""
    address = f"{settings.broker.broker_ip1}:{settings.server.listen_port}"
    words = f"clients are told {address} ({settings.address_reason})"
    is_far = any(not is_loopback(server) for server in settings.name_servers)
    if is_loopback(address) and is_far:
        words += ", which only this machine reaches: set brokerIP1"
        yield Finding(PROBLEM, "address", words)
    else:
        yield Finding(OK, "address", words)
    if not settings.has_name_servers:
        words = "no name server is configured, so no client will find this broker: "
        words += "set it, as in namesrvAddr=127.0.0.1:9876"
        yield Finding(PROBLEM, "namesrvAddr", words)


def of_ports(settings: BrokerSettings) -> Iterator[Finding]:
    """Whether the ports are free."""
    host = settings.server.bind_address
    port = settings.server.listen_port
    for name, number in (
        ("listenPort", port),
        ("VIP port", port - 2),
        ("haListenPort", settings.store.ha_listen_port),
        ("metricsPromExporterPort", settings.broker.metrics_prom_exporter_port),
    ):
        if number <= 0:
            continue
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, number))
            except OSError as error:
                words = f"{number}: {error.strerror}; is the broker running already?"
                yield Finding(WARNING, name, words)
            else:
                yield Finding(OK, name, f"{number} is free")


def of_limits() -> Iterator[Finding]:
    """How many files may be open: a server raises the soft limit to the hard one."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < MIN_DESCRIPTORS:
        words = f"{hard}: each client needs one; raise the hard limit (LimitNOFILE)"
        yield Finding(WARNING, "open files", words)
    else:
        shown = "no limit" if hard == resource.RLIM_INFINITY else str(hard)
        yield Finding(OK, "open files", f"{shown} (hard limit)")


def of_disk(options: StoreOptions, files: IFiles) -> Iterator[Finding]:
    """Room and rights where the store is, or will be: as the broker sees it."""
    root = existing(options.store_path_root_dir)
    if not os.access(root, os.W_OK):
        yield Finding(PROBLEM, "storePathRootDir", f"{root} cannot be written by you")
    logs = [existing(folder) for folder in log_folders(options)]
    flags = RunningFlags()
    usage = DiskUsage(files, options, logs, root, root, flags, lambda: 0)
    usage.measure()
    if flags.has(DISK_FULL):
        words = f"sends will be refused: {flags.reasons(DISK_FULL)}"
        yield Finding(PROBLEM, "storePathRootDir", words)
        return
    for key, room in (("storePathRootDir", usage.queues), (LOG_KEY, usage.log)):
        if key == LOG_KEY and room.path == root:
            continue
        status = OK if room.percent < DISK_WARNING else WARNING
        words = f"the disk of {room.path} is {room.percent} % full"
        yield Finding(status, key, words)


def log_folders(options: StoreOptions) -> list[str]:
    """Where the log is, or will be."""
    given = (options.store_path_commit_log or "").split(",")
    return [folder for folder in given if folder] or [options.store_path_root_dir]


def existing(folder: str) -> str:
    """The directory, or the nearest one above it that is there."""
    place = os.path.abspath(os.path.expanduser(folder))
    while not os.path.exists(place):
        place = os.path.dirname(place)
    return place
