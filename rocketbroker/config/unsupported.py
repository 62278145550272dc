# -*- test-case-name: tests.config.test_unsupported -*-
"""Settings that refuse the start, because what they ask for is not built; settings of
ours that were removed.

A setting stands here if ignoring it would lose data, open access, or change what
clients see: the operator would believe in a copy, a lock or a limit that is not there.
Some of the keys belong to no options class, as RocketMQ reads them with code of their
own (C{docs/facts/security-metrics.md 3.1 and 4}). All other settings without effect are
listed in C{docs/settings.rst}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from rocketbroker.errors import ConfigurationError


class UnsupportedKey(NamedTuple):
    """A key of which only some values can be served.

    @ivar key: the key in the file.
    @ivar served: the values that do not refuse the start, in lower case.
    @ivar reason: why the others do; the end of a sentence.
    """

    key: str
    served: tuple[str, ...]
    reason: str


_OFF: Final = ("false",)
_NO_CONTROL: Final = "name servers control no access, and neither do RocketMQ's"

#: Settings that count for brokers only, and that a name server refuses: an operator
#: would believe in them.
BROKERS_OWN: Final = ("aclEnable", "authenticationEnabled", "authorizationEnabled")

#: What keeps copies here.
_PAIR: Final = (
    "use a master with brokerRole=SYNC_MASTER and inSyncReplicas=2, and a slave with "
    "brokerRole=SLAVE (docs/replication.rst)"
)

#: Settings of any server.
SERVER: Final = (
    UnsupportedKey("tlsMode", ("",), "the key is tls.server.mode"),
    UnsupportedKey(
        "socksProxyConfig",
        ("", "{}"),
        "connections through a SOCKS proxy are not supported, and would be direct",
    ),
)

#: Settings of a broker, besides.
BROKER: Final = (
    UnsupportedKey(
        "enableControllerMode",
        _OFF,
        f"controllers, which choose masters, are not supported yet; {_PAIR}",
    ),
    UnsupportedKey(
        "enableDLegerCommitLog", _OFF, f"DLedger groups are not supported; {_PAIR}"
    ),
    UnsupportedKey(
        "duplicationEnable",
        _OFF,
        f"it would switch replication off for a way of copying of old; {_PAIR}",
    ),
    UnsupportedKey(
        "storeType",
        ("default",),
        "queues are kept in files, as default says, and not in RocksDB",
    ),
    UnsupportedKey(
        "configManagerVersion",
        ("v1",),
        "tables are kept in JSON files, as v1 says, and not in RocksDB",
    ),
    UnsupportedKey(
        "timerRocksDBEnable",
        _OFF,
        "timers are kept in the timer wheel, and those in RocksDB would not come",
    ),
    UnsupportedKey(
        "transRocksDBEnable",
        _OFF,
        "open transactions are kept in the log, and nobody would ask about those in "
        "RocksDB",
    ),
)

#: Settings of a name server, besides.
NAME_SERVER: Final = (
    *(UnsupportedKey(key, _OFF, _NO_CONTROL) for key in BROKERS_OWN),
    UnsupportedKey(
        "clusterTest", _OFF, "routes of other name servers are not asked for"
    ),
    UnsupportedKey(
        "enableControllerInNamesrv", _OFF, "controllers are not supported yet"
    ),
)


#: Settings of ours that earlier releases had: what to do instead.
REMOVED: Final = {
    "metricsExporterNames": "RocketMQ's own rocketmq-exporter runs with this broker as "
    "it is; start it beside the broker for metrics under its names",
}


def check_supported(
    properties: Mapping[str, str], source: str, table: Iterable[UnsupportedKey]
) -> None:
    """Refuse settings that ask for what is not built.

    @param properties: the settings of a file.
    @param source: the file's path, for the error.
    @raise ConfigurationError: the first such setting; one sentence.
    """
    for key, served, reason in table:
        text = properties.get(key, served[0]).strip()
        if text.lower() not in served:
            raise ConfigurationError(f"{source}: {key} cannot be {text!r}: {reason}.")


def check_identity(broker_role: str, broker_id: int, source: str) -> None:
    """Refuse a slave that has the master's id.

    @raise ConfigurationError: one sentence.
    """
    if broker_role == "SLAVE" and broker_id <= 0:
        raise ConfigurationError(
            f"{source}: brokerId cannot be {broker_id} with brokerRole=SLAVE: slave's "
            f"brokerId must be > 0."
        )
