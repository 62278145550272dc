"""What every server shows of its process."""

from __future__ import annotations

import os
import platform

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.codec.build import FORM
from rocketbroker.files.own_version import own_version
from rocketbroker.metrics.process_families import add_process, read_process
from rocketbroker.metrics.samples import Samples
from tests.metrics.scraped import parsed


class ProcessFamiliesTests(SynchronousTestCase):
    """This process, by the system's own figures."""

    def test_process(self) -> None:
        """Memory, CPU, descriptors and start have the names of other programs."""
        samples = Samples({"node_id": "b"})
        add_process(samples, read_process())
        found = {s.name: s for family in parsed(samples) for s in family.samples}
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        size = pages * os.sysconf("SC_PAGE_SIZE")
        resident = found["process_resident_memory_bytes"]
        self.assertLess(abs(resident.value / size - 1), 0.2)
        self.assertEqual(resident.labels, {"node_id": "b"})
        self.assertGreater(found["process_cpu_seconds_total"].value, 0)
        for name in ("open_fds", "max_fds", "start_time_seconds"):
            self.assertGreater(found[f"process_{name}"].value, 2, name)

    def test_build(self) -> None:
        """The build is told by labels."""
        samples = Samples({})
        add_process(samples, [])
        ((build,),) = [family.samples for family in parsed(samples)]
        self.assertEqual(
            (build.name, build.value, build.labels),
            (
                "rocketbroker_build_info",
                1,
                {
                    "version": own_version(),
                    "python": platform.python_version(),
                    "codec": FORM,
                },
            ),
        )
