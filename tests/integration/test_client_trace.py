"""Message trace of our client, as RocketMQ's command line shows it."""

from __future__ import annotations

from rocketbroker.threads import connect
from scripts.lab.javaclient import PATIENCE
from tests.integration.javacase import JavaCase, fresh, until

#: How long a command may take.
MILLISECONDS = 60_000


class TraceTests(JavaCase):
    """C{mqadmin queryMsgTraceById}."""

    def shown(self, message_id: str) -> list[tuple[str, str, str]]:
        """Kind, group and status of each line that the command prints of a message."""
        words = ["queryMsgTraceById", "-i", message_id, "-n", self.cluster.names]
        answer = self.java("mqadmin", words=words, timeoutMs=MILLISECONDS)
        lines = [line.split() for line in answer["printed"].splitlines() if line]
        return sorted(
            (words[0], words[1], words[-1]) for words in lines if words[0][0] != "#"
        )

    def test_sendAndHandlingAreShown(self) -> None:
        """The send, and the handling of each group with what became of it."""
        topic, producers = self.topic(1), fresh("P")
        done, failed = sorted((fresh("G"), fresh("G")))
        with connect(self.cluster.names, trace=True, group=producers) as mq:
            sent = mq.send(topic, "hello", tag="a", keys=["k1"])
            for group in (done, failed):
                with mq.consumer(topic, group, start="earliest") as messages:
                    message = messages.next(PATIENCE)
                    assert message is not None
                    if group == done:
                        message.ack()
                    else:
                        message.retry()
        found: list[tuple[str, str, str]] = []

        def is_shown() -> bool:
            found[:] = self.shown(sent.message_id)
            return len(found) == 3

        self.assertTrue(until(is_shown), found)
        rows = [("Pub", producers, "success"), ("Sub", done, "success")]
        self.assertEqual(found, [*rows, ("Sub", failed, "failed")])
