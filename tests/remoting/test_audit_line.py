"""How changes of topics and groups are described in the log."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.audit_line import MAX_SHOWN, differences


class DifferencesTests(SynchronousTestCase):
    """L{differences}."""

    def test_new(self) -> None:
        """All fields of something new are shown."""
        self.assertEqual(differences({}, {"a": 1, "b": "x"}), "a=1, b=x")

    def test_changed(self) -> None:
        """Of a change only the fields that differ are shown, with their old values."""
        shown = differences({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4})
        self.assertEqual(shown, "b=3 (was 2), c=4")

    def test_same(self) -> None:
        """Without a difference there is nothing to show."""
        self.assertEqual(differences({"a": 1}, {"a": 1}), "")

    def test_long(self) -> None:
        """A long text is cut."""
        self.assertEqual(len(differences({}, {"a": "x" * 9999})), MAX_SHOWN)
