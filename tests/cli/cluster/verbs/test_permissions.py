"""Topics that may not be read, or written."""

from __future__ import annotations

from tests.cli.cluster.cluster import VerbCase


class PermissionTests(VerbCase):
    """Topic T may only be written."""

    def setUp(self) -> None:
        super().setUp()
        self.call("topic", "create", "T", "-q", "1", "--perm", "w")
        self.cluster.group("G")

    def test_unreadableTopicIsTold(self) -> None:
        """Whoever reads it is told why nothing comes."""
        for line in (
            "message receive T",
            "message receive T --follow",
            "message receive T -g G",
            "message receive T --queue broker-a:0",
            "message find T",
            "message find T --queue broker-a:0 --offset 0",
            "offset show T",
            "group reset G T --to earliest --yes",
            "bench receive T",
        ):
            error = self.call(*line.split(), status=1).stderr
            self.assertIn("T may not be read: it has no read permission", error, line)
            self.assertIn("topic update TOPIC --perm rw", error, line)

    def test_otherQueueIsNotThere(self) -> None:
        """A queue that the topic does not have is 3."""
        self.call("topic", "update", "T", "--perm", "rw")
        for queue in ("broker-a:1", "nowhere:0"):
            words = ("message", "receive", "T", "--queue", queue)
            self.assertIn("There is no queue", self.call(*words, status=3).stderr)

    def test_unwritableTopicIsTold(self) -> None:
        """Whoever sends is told that the topic may not be written."""
        self.call("topic", "update", "T", "--perm", "r")
        error = self.call("message", "send", "T", "x", status=1).stderr
        self.assertIn("T may not be written: it has no write permission", error)
