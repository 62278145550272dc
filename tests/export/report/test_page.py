"""The page about an export."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.history import Gap, History, PendingPlan
from rocketbroker.export.lags import Lag
from rocketbroker.export.report.number_texts import bytes_text, span_text
from rocketbroker.export.report.page import Subject, page
from rocketbroker.export.verify import Fault, check_manifest
from rocketbroker.sources.ranges import Range
from tests.export.report.ledgers import (
    START_MS,
    commit,
    data_file,
    history,
    long_history,
    queue,
)

ZERO, ONE = queue(0), queue(1)
VERIFIED: dict[str, Any] = {
    "verified": START_MS,
    "lastCommit": 1,
    "level": "digests",
    "files": 2,
    "rows": 30,
    "faults": 0,
}


def subject(found: History, **words: Any) -> Subject:
    """A report's subject."""
    faults = tuple(check_manifest(found))
    whole = Subject(
        "/data/<lake>", found, faults, None, None, "n:1", 128 << 20, START_MS + 1
    )
    return attrs.evolve(whole, **words)


def text_of(page: str) -> str:
    """What people read, without the marks; the page must be well formed."""
    tree = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    body = tree.find("body")
    assert body is not None
    return " ".join(" ".join(body.itertext()).split())


class PageTests(SynchronousTestCase):
    """L{page}."""

    def small(self) -> History:
        """Two commits of two queues."""
        return history(
            commit(
                1, [data_file(1, Range(ZERO, 0, 10)), data_file(1, Range(ONE, 0, 9))]
            ),
            commit(2, [data_file(2, Range(ZERO, 10, 21), 2)], seconds=0.5),
        )

    def test_whole(self) -> None:
        """A whole export is called so; what was checked, and what was made since."""
        text = text_of(page(subject(self.small(), verified=VERIFIED)))
        for part in (
            "Whole: every offset of every queue is in exactly one file.",
            "/data/<lake>",
            "30 messages",
            "checked 2026-11-21 14:00 UTC (digests), 2 files, 30 rows, 0 faults, "
            "and 1 commit made since",
            "nothing was stored in 1 hour.",
            "The source was not asked",
            "It never changed.",
            "What is missing Nothing.",
            "/data/<lake>/Orders",
        ):
            self.assertIn(part, text)

    def test_alone(self) -> None:
        """The page asks for nothing from elsewhere and runs nothing."""
        text = page(subject(self.small()))
        for pattern in (r"<script", r"https?://", r"\bsrc=", r"@import", r"url\("):
            self.assertEqual(re.findall(pattern, text), [])

    def test_chartsAreDrawnAsSvg(self) -> None:
        """Names, numbers, a line for the target; each queue has a picture."""
        text = page(subject(self.small(), lags=(Lag(ZERO, 3, 21, 40),)))
        tree = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
        drawn = list(tree.iter("svg"))
        kinds = [each.get("class") for svg in drawn for each in svg.iter()]
        self.assertEqual(kinds.count("span"), 2)
        for kind in ("grid", "y", "x", "column", "bar", "mark", "wait"):
            self.assertIn(kind, kinds)
        titles = [title.text for svg in drawn for title in svg.iter("title")]
        self.assertIn("0 to 21 of 40", titles)

    def test_namesThatAreMarksAreEscaped(self) -> None:
        """Topics, addresses and sources are whatever somebody has chosen."""
        evil = "</title><script>'\"&"
        whole = subject(self.small(), lags=(), source=evil)
        text = page(attrs.evolve(whole, address=evil))
        self.assertNotIn("<script", text)
        self.assertEqual(text_of(text).count(evil), 2)

    def test_missing(self) -> None:
        """What is missing is told with its reason, and is no fault."""
        gone = Gap(Range(ZERO, 0, 4), "it <begins> at 4", True, 1)
        files = [data_file(1, Range(ZERO, 4, 20), hole=(7, 9))]
        text = text_of(page(subject(history(commit(1, files, (gone,))))))
        for part in (
            "6 messages could not be exported",
            "removed at the source 1 it <begins> at 4",
            "hole 1 damaged at 7",
        ):
            self.assertIn(part, text)

    def test_filtered(self) -> None:
        """What a filter has left out is not missing, and is told."""
        (file,) = [data_file(1, Range(ZERO, 0, 10))]
        part = attrs.evolve(file.parts[0], rows=7, filtered=3)
        file = attrs.evolve(file, rows=7, parts=(part,))
        text = text_of(page(subject(history(commit(1, [file])))))
        self.assertIn("exactly one file; a filter has left out 3 messages.", text)

    def test_faults(self) -> None:
        """Faults are listed, and so are plans that wait."""
        whole = subject(self.small())
        found = attrs.evolve(
            whole,
            history=attrs.evolve(
                whole.history, pending=(PendingPlan(3, "Orders", START_MS, 5, 1),)
            ),
            faults=(Fault("manifest", "commit 2", "missing in the ledger"),),
        )
        text = text_of(page(found))
        for part in (
            "Not whole: 1 fault, listed below.",
            "commit 2 missing in the ledger",
            "Plan 3 of Orders waits: 5 messages",
        ):
            self.assertIn(part, text)
        damaged = subject(self.small(), verified={**VERIFIED, "faults": 2})
        self.assertIn("Not whole: 2 faults", text_of(page(damaged)))

    def test_lags(self) -> None:
        """With its source, a page says how far each queue is behind."""
        lags = (Lag(ZERO, 3, 21, 40, START_MS, 7_200_000), Lag(ONE, 0, 9, 9))
        text = text_of(page(subject(self.small(), lags=lags)))
        self.assertIn("Compared with n:1", text)
        self.assertIn("19 behind, up to 2.0 h", text)
        self.assertIn("3 21 40 0 to 21 of 40 19 2.0 h 0", text)

    def test_nothing(self) -> None:
        """A ledger without commits is a page, too."""
        text = text_of(page(subject(history())))
        self.assertIn("Nothing is exported yet.", text)
        self.assertNotIn("How to read it", text)

    def test_undecodable(self) -> None:
        """Bodies that are still compressed are counted by file."""
        files = [data_file(1, Range(ZERO, 0, 9), decodeErrors=3)]
        text = text_of(page(subject(history(commit(1, files)))))
        self.assertIn("3 bodies could not be decompressed", text)

    def test_bounded(self) -> None:
        """A thousand commits and five hundred queues make a page of some 100 KB, with
        the sums of what is left out."""
        found = long_history(1000, 500, 5)
        lags = tuple(Lag(queue(n), 0, 5, 10 + n) for n in range(500))
        text = page(subject(found, lags=lags))
        self.assertLess(len(text), 150_000)
        self.assertIn("and 470 queues more: ", text_of(text))

    def test_numbers(self) -> None:
        """Sizes and durations are short."""
        self.assertEqual(
            [bytes_text(size) for size in (5, 2048, 3 << 20, 5 << 30, 3 << 40)],
            ["5 B", "2.0 KiB", "3.0 MiB", "5.0 GiB", "3.0 TiB"],
        )
        self.assertEqual(
            [span_text(ms) for ms in (None, 2000, 90_000, 3_600_000, 2 * 86_400_000)],
            ["-", "2 s", "1.5 min", "1.0 h", "2.0 d"],
        )
