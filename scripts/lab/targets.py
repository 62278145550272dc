"""The brokers that scripts/bench/scale.py measures: ours and the Java broker."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.lab.kit import Kit
from scripts.lab.peers import Target
from scripts.lab.rows import Figure
from scripts.lab.servers import Cluster, free_base


class Scale(NamedTuple):
    """How it is measured.

    @ivar quick: with small loads.
    @ivar kit: the kit.py that runs the Java broker, or None.
    """

    quick: bool
    kit: str | None

    def of(self, full: int, quick: int) -> int:
        """A load."""
        return quick if self.quick else full

    @contextlib.contextmanager
    def ours(
        self, prepare: Callable[[Path], object] | None = None, **settings: object
    ) -> Iterator[Target]:
        """Our broker.

        @param prepare: called with the directory of its store before it starts.
        """
        cluster = Cluster(**settings)
        try:
            if prepare is not None:
                prepare(cluster.store)
            yield target(cluster.start())
        finally:
            cluster.stop()

    @contextlib.contextmanager
    def java(
        self,
        kit: str,
        prepare: Callable[[Path], object] | None = None,
        **settings: object,
    ) -> Iterator[Target]:
        """The Java broker; see L{ours}."""
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            serving, base = Kit(kit, 0).serving, free_base()
            names = [f"--port={base}", f"--home={folder}/names"]
            stack.enter_context(serving("namesrv", *names))
            words = [f"--namesrv=127.0.0.1:{base}", f"--port={base + 10}"]
            words += [f"--store={folder}/store", "--heap=1g"]
            settings = {
                "enablePropertyFilter": "true",
                "metricsExporterType": "PROM",
                "metricsPromExporterPort": base + 15,
                **settings,
            }
            for key, value in settings.items():
                words += ["-s", f"{key}={value}"]
            if prepare is not None:
                prepare(Path(folder, "store"))
            pid = stack.enter_context(serving("broker", *words))
            yield Target(base + 10, pid, metrics=base + 15)

    def beside_java(
        self, measure: Callable[[Target], Sequence[Figure]], **settings: object
    ) -> Iterator[Figure | str]:
        """Measure ours, and the Java broker if there is a kit.

        A load that the Java broker does not bear is told in words.
        """
        with self.ours(None, **settings) as found:
            yield from measure(found)
        if self.kit is not None:
            with self.java(self.kit) as found:
                try:
                    figures = measure(found)
                except (OSError, RuntimeError) as error:
                    yield f"Java: not measured: {error}"
                    return
                for each in figures:
                    yield each._replace(name=f"Java: {each.name}", bar=None)


def target(cluster: Cluster) -> Target:
    """The broker of a cluster that is up."""
    assert cluster.broker.process is not None
    pid, metrics = cluster.broker.process.pid, cluster.broker_metrics
    return Target(cluster.broker.port, pid, cluster, metrics)
