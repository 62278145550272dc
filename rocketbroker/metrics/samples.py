# -*- test-case-name: tests.metrics.test_samples -*-
"""Families of samples under construction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from prometheus_client.core import Metric


@final
class Samples:
    """All that one scrape shows.

    @ivar common: the labels that every sample has; none of its own may replace one.
    """

    def __init__(self, common: dict[str, str]) -> None:
        self.common = common
        self._families: dict[str, Metric] = {}

    def _family(self, name: str, words: str, kind: str) -> Metric:
        from prometheus_client.core import Metric

        family = self._families.get(name)
        if family is None:
            family = self._families[name] = Metric(name, words, kind)
        return family

    def gauge(self, name: str, words: str, value: float, **labels: str) -> None:
        """A value that goes up and down."""
        self._family(name, words, "gauge").add_sample(
            name, {**labels, **self.common}, value
        )

    def counter(self, name: str, words: str, value: float, **labels: str) -> None:
        """A count since the start.

        @param name: ends in C{_total}.
        """
        family = self._family(name.removesuffix("_total"), words, "counter")
        family.add_sample(name, {**labels, **self.common}, value)

    def histogram(
        self,
        name: str,
        words: str,
        bounds: Sequence[float],
        counts: Sequence[int],
        total: float,
        **labels: str,
    ) -> None:
        """How many values fell into each class.

        @param bounds: the upper bounds of all classes but the last, which is open.
        @param counts: one number for each class, not added up.
        @param total: the sum of all values.
        """
        family = self._family(name, words, "histogram")
        own = {**labels, **self.common}
        running = 0
        for bound, count in zip([*bounds, float("inf")], counts, strict=True):
            running += count
            text = "+Inf" if bound == float("inf") else str(float(bound))
            family.add_sample(f"{name}_bucket", {**own, "le": text}, running)
        family.add_sample(f"{name}_count", own, running)
        family.add_sample(f"{name}_sum", own, total)

    def families(self) -> list[Metric]:
        """The families that were built."""
        return list(self._families.values())


def constant_labels(text: str) -> dict[str, str]:
    """The labels of metricsLabel: C{key:value,key:value}; others are skipped."""
    pairs = [item.split(":") for item in text.split(",")]
    return {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2}
