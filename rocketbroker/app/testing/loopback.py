# -*- test-case-name: tests.app.testing.test_loopback -*-
"""The settings of a broker in testing mode, which only this machine can reach.

Whoever reaches it moves its time and lets it fail. So nothing that it listens on, and
no address that it tells, is another than this machine's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rocketbroker.app.startflags import LOOPBACK
from rocketbroker.app.temporary import BESIDE, INDEX
from rocketbroker.config.addresses import is_loopback
from rocketbroker.errors import ConfigurationError

#: The size of a segment of the log: retention removes whole ones, and never the last.
SEGMENT: Final = 1 << 20

#: What a segment has beside the largest body, where the segment is so small.
BESIDE_SMALL: Final = 64 << 10

#: Where it listens, and what it tells.
ADDRESSES: Final = ("bindAddress", "brokerIP1", "brokerIP2", "metricsPromExporterHost")


def testing_sizes(settings: Mapping[str, str]) -> dict[str, str]:
    """The sizes of files, and their pace of removal.

    The largest message fits: that of the settings, or else of a segment.

    @param settings: of the broker.
    """
    most = settings.get("maxMessageSize", "")
    sizes = {"deleteCommitLogFilesInterval": "1", **INDEX}
    if most.isdigit():
        sizes["mappedFileSizeCommitLog"] = str(max(SEGMENT, int(most) + BESIDE))
    elif "mappedFileSizeCommitLog" not in settings:
        sizes["mappedFileSizeCommitLog"] = str(SEGMENT)
        sizes["maxMessageSize"] = str(SEGMENT - BESIDE_SMALL)
    return sizes


def testing_settings(given: Mapping[str, str]) -> dict[str, str]:
    """The settings for testing: all addresses are this machine's own.

    @param given: the settings of file and flags.
    @raise ConfigurationError: they cannot be those of such a broker; one sentence.
    """
    if given.get("brokerRole", "").strip() == "SLAVE":
        raise ConfigurationError(
            "--testing is not for a slave (brokerRole=SLAVE): its log is its master's."
        )
    if given.get("workers", "0").strip() not in ("", "0"):
        raise ConfigurationError(
            "--testing is not for a broker with workers, whose clocks nobody moves: "
            "leave workers out."
        )
    settings = {**testing_sizes(given), **given}
    for key in ADDRESSES:
        told = given.get(key, "").strip() or LOOPBACK
        if not is_loopback(told):
            flag = " (--advertise)" if key == "brokerIP1" else ""
            raise ConfigurationError(
                f"--testing listens on this machine only, and {key}{flag} is {told}: "
                "leave it out."
            )
        settings[key] = told
    return settings
