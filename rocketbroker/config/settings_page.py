# -*- test-case-name: tests.config.test_settings_page -*-
"""C{docs/settings.rst}, made from the options themselves::

python3 -m rocketbroker.config.settings_page > docs/settings.rst
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import attrs

from rocketbroker.config.auth import AuthOptions
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.effects import keys_without_effect
from rocketbroker.config.keyed import KeyedOptions, text_of
from rocketbroker.config.metrics import MetricsAccessOptions
from rocketbroker.config.namesrv import NamesrvOptions
from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from rocketbroker.config.store import StoreOptions
from rocketbroker.config.tls import TlsOptions
from rocketbroker.config.unsupported import BROKER, NAME_SERVER, SERVER

#: Defaults that depend on the machine or on other settings, by key.
DEFAULTS: Final = {
    "brokerName": "the host name",
    "rocketmqHome": "the environment's ``ROCKETMQ_HOME``",
    "brokerIP1": "``bindAddress``, or the address of the route to other networks",
    "brokerIP2": "as ``brokerIP1``",
    "brokerConfigPath": "that of ``-c``, or ``config/broker.properties`` in the store",
    "namesrvAddr": "the environment's ``NAMESRV_ADDR``",
    "storePathRootDir": "``store`` in the home directory",
    "storePathCommitLog": "``commitlog`` in the root directory",
    "kvConfigPath": "``namesrv/kvConfig.json`` in the home directory",
    "configStorePath": "``namesrv/namesrv.properties`` in the home directory",
    "listenPort": "10911; of a name server 9876",
    "haListenPort": "``listenPort`` + 1",
}

INTRODUCTION: Final = """\
========
Settings
========

.. Made from the code: python3 -m rocketbroker.config.settings_page > docs/settings.rst

Settings stand in a Java ``.properties`` file, one ``key=value`` a line, with RocketMQ's
keys: ``rocketbroker broker run -c broker.properties``, ``rocketbroker namesrv run -c
namesrv.properties`` or ``rocketbroker standalone -c broker.properties``; with
``twistd rocketbroker`` and ``twistd namesrv`` alike. A comment has a line of its own;
behind a value it would be part of the value.

A value that does not fit ends the start with one sentence and exit status 1. A key that
is not known, and a setting without effect that is not at its default, is named in the
log at the start. ``twistd rocketbroker -p`` and ``twistd namesrv -p`` print all
settings as they are in force, each key once; ``twistd rocketbroker -m`` prints those
that RocketMQ's ``mqbroker -m`` has chosen.

A path may be relative: it begins in the directory in which the server was started, as
with RocketMQ, and not in that of the settings file; twistd's ``--rundir`` does not
change that. ``~`` at its begin, and ``${user.home}``, are the home directory; RocketMQ
takes these two as they stand, and makes directories of that name. The same goes for
``-c``, ``--log-file`` and twistd's ``--logfile``.

``mqadmin updateBrokerConfig`` changes the settings that say ``yes`` under `While
running`, at once and for all parts; others are refused, because they need a restart.
The new values are written to the file of ``-c``: in the place of the old ones, and
nothing else in the file changes; the content before stands in ``.bak``. Without ``-c``
they are written to ``config/broker.properties`` in the store, from which the next start
takes them. A file that was edited by hand counts at the next start; no signal makes a
server read it again.

.. contents::
   :local:
"""

REFUSED: Final = """\
Settings that refuse the start
==============================

What these settings ask for is not built. A server that ignored them would lose
messages, be open to everybody, or serve clients otherwise than they are told.
"""

WITHOUT_EFFECT: Final = """\
Settings without effect
=======================

These keys of RocketMQ are known, kept and printed, and change nothing here. Most of
them size thread pools and buffers of a Java process, or belong to features that are not
built yet (controllers, RocksDB).

Of POP: a look at a queue of check points is short, and costs nothing while it is idle
(``reviveMaxSlow``, ``reviveScanTime``). Acknowledgements without a check point hold
nothing up (``enableSkipLongAwaitingAck``, ``reviveAckWaitMs``); those of one check
point are one message (``enablePopBatchAck``). Answers wait until all is appended, and
nothing else waits for that (``appendAckAsync``, ``appendCkAsync``). Lag is counted
without waking consumers (``enableNotifyBeforePopCalculateLag``), and waiting pops have
no table of their own (``popPollingMapSize``). The others belong to RocketMQ's key-value
store: with ``popConsumerKVServiceEnable`` pops are refused.

Of timers: what cannot be delivered is tried again until it is
(``timerEnableRetryUntilSuccess``, ``timerSkipUnknownError``). ``timerCheckMetricsWhen``
and ``timerStopDequeue`` cannot be set in RocketMQ either.
"""


class Section(NamedTuple):
    """A table of the page."""

    title: str
    options: type[KeyedOptions]


SECTIONS: Final = (
    Section("Broker", BrokerOptions),
    Section("Store", StoreOptions),
    Section("Name server", NamesrvOptions),
    Section("Ports of both", RemotingServerOptions),
    Section("Connections to other servers", RemotingClientOptions),
    Section("TLS of both", TlsOptions),
    Section("Access control of brokers (ACL 2.0)", AuthOptions),
    Section("Metrics of both", MetricsAccessOptions),
)


def settings_page() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield INTRODUCTION
    for title, options in SECTIONS:
        yield from _heading(title)
        names = [name for name in options.keys().values() if name in options.ABOUT]
        yield from _table(
            ("Key", "Default", "Unit", "While running", "Meaning"),
            [_row(options, name) for name in names],
        )
    yield REFUSED
    yield from _table(
        ("Key", "Served", "Reason"),
        [
            (f"``{key}``", " ".join(f"``{each}``" for each in served if each), reason)
            for key, served, reason in (*SERVER, *BROKER, *NAME_SERVER)
        ],
    )
    yield WITHOUT_EFFECT
    for title, options in SECTIONS:
        yield f"{title}:"
        yield ""
        for key in keys_without_effect(options):
            yield f"* ``{key}``"
        yield ""


def _heading(title: str) -> tuple[str, str, str]:
    return title, "=" * len(title), ""


def _row(options: type[KeyedOptions], name: str) -> tuple[str, ...]:
    """The cells of a setting that has an effect."""
    key = {value: key for key, value in options.keys().items()}[name]
    default = DEFAULTS.get(key)
    if default is None:
        fields = attrs.fields_dict(options)  # type: ignore[arg-type]
        value = fields[name].default
        assert not hasattr(value, "factory"), f"DEFAULTS must tell that of {key}"
        default = f"``{text_of(value)}``" if value not in (None, "") else ""
    changes = "yes" if key in options.running_keys() else ""
    unit = options.UNITS.get(name, "")
    return f"``{key}``", default, unit, changes, options.ABOUT[name]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield ""
    for row in (head, *rows):
        for number, cell in enumerate(row):
            yield f"   {'  -' if number else '* -'} {cell}".rstrip()
    yield ""


if __name__ == "__main__":
    print(settings_page(), end="")
