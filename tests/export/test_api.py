"""Exports out of a program."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.export.api import ExportFailed, export_with, word_of
from rocketbroker.sources.offline import StoreOrigin
from rocketbroker.sources.options import ReadOptions
from tests.export.worlds import LocalCopying
from tests.store.index.keyed import message
from tests.store.stores import on_disk


class ExportTests(SynchronousTestCase):
    """L{export_with}."""

    def setUp(self) -> None:
        """A store."""
        self.store = os.path.abspath(self.mktemp())
        store = on_disk(self.store)
        store.append([message(store, key) for key in "abc"])
        while store.dispatch(100):
            pass
        store.close()
        origin = StoreOrigin(ReadOptions(store=self.store, topics=("T",)))
        self.addCleanup(origin.close)
        self.copying = LocalCopying(origin)
        self.root = os.path.abspath(self.mktemp())

    def test_exported(self) -> None:
        """It says what it has exported."""
        options = {"store": self.store, "subscribe": "T", "decompress": True}
        done = export_with(self.copying, self.root, 10**9, options)
        self.assertEqual((done.rows, done.files, done.statuses), (3, 1, {"T": 0}))
        done = export_with(self.copying, self.root, 10**9, options)
        self.assertEqual((done.rows, done.files, done.statuses), (0, 0, {"T": 3}))
        self.assertEqual(self.copying.closed, 0)

    def test_failed(self) -> None:
        """What fails is an exception, once all else is done."""
        options = {"store": self.store, "subscribe": "U,T"}
        error = self.assertRaises(
            ExportFailed, export_with, self.copying, self.root, 10**9, options
        )
        self.assertEqual(str(error), f"{self.store} holds no queue of U")
        self.assertEqual(error.statuses, {"U": 1, "T": 0})

    def test_refused(self) -> None:
        """Options that make no sense are refused."""
        for options in ({"store": "s"}, {"store": "s", "subscribe": "T", "bogus": 1}):
            self.assertRaises(
                ConfigurationError, export_with, self.copying, self.root, 1, options
            )

    def test_words(self) -> None:
        """Options may be numbers and truths."""
        self.assertEqual([word_of(each) for each in (True, 5, "x")], ["true", "5", "x"])
