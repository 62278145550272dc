"""Verbs that gather from several brokers, of which one does not answer."""

from __future__ import annotations

from tests.cli.cluster.cluster import AWAY, VerbCase

#: How standard error begins.
TOLD = f"rocketbroker: broker-b does not answer: cannot connect to {AWAY}"


class AwayTests(VerbCase):
    """Topic T and group G on broker-a; what broker-b has is not known."""

    def setUp(self) -> None:
        super().setUp()
        self.cluster.topic("T", 1)
        self.cluster.group("G")
        sent = self.kind("sent", "message", "send", "T", "one", "-k", "key")
        self.sent_id = sent[0]["id"]
        self.cluster.with_broker_away()

    def test_notFoundMayBeOnIt(self) -> None:
        """What the others do not have is not said to be missing."""
        other = "0" * 32
        for line in (
            "message find T -k x",
            "message find T --grep x",
            f"message view {other} -t T",
            "group show X",
            "group delete X --yes",
            "consumer ls X",
            "consumer show X client",
            "producer ls X",
            "mqadmin queryMsgByKey -t T -k x",
            f"mqadmin queryMsgById -i {other} -t T",
            f"mqadmin queryMsgByUniqueKey -i {other} -t T",
            "mqadmin printMsg -t T -s x",
            "mqadmin getConsumerConfig -g X",
            "mqadmin consumerProgress -g X",
            "mqadmin consumerStatus -g X",
            "mqadmin consumerConnection -g X",
            "mqadmin producerConnection -g X -t T",
            "mqadmin deleteSubGroup -g X -c DefaultCluster",
        ):
            error = self.call(*line.split(), status=1).stderr.splitlines()[-1]
            self.assertTrue(error.startswith(TOLD), (line, error))
            self.assertIn(". Without it: ", error, line)
            self.assertIn("has to be reachable from here", error, line)

    def test_othersAreShown(self) -> None:
        """What the others have is shown; the status and a sentence say that it is not
        all."""
        for line, shown in (
            ("message find T -k key", "one"),
            ("message find T", "one"),
            ("group show G", "broker-a"),
            ("group ls", "G"),
            ("topic ls", "T"),
            ("topic show T", "broker-a"),
            ("offset show T", "broker-a"),
            ("cluster ls", "broker-b"),
            ("broker replicas", "broker-a"),
            ("top --once", "broker-a"),
        ):
            result = self.call(*line.split(), status=1)
            self.assertIn(shown, result.stdout, line)
            self.assertTrue(result.stderr.startswith(TOLD), (line, result.stderr))

    def test_changesNameIt(self) -> None:
        """A verb that stops at a broker names it."""
        for line in (
            "topic create U",
            "topic update T -q 4",
            "topic delete T --yes",
            "group create H",
            "group update G --retries 3",
            "group reset G T --to earliest --yes",
            "offset set G T broker-b:0 0 --yes",
            "broker status broker-b",
            "message send T x --queue broker-b:0",
            "message receive T",
            "message receive T --queue broker-b:0",
            "bench receive T",
        ):
            error = self.call(*line.split(), status=1).stderr
            self.assertTrue(error.startswith(TOLD), (line, error))

    def test_foundIsAll(self) -> None:
        """One message is found: another broker does not matter."""
        self.assertIn(
            "one", self.call("message", "view", self.sent_id, "-t", "T").stdout
        )

    def test_sendOfManyNamesIt(self) -> None:
        """A send that breaks off says how many are sent, and whose fault it is."""
        words = ("message", "send", "T", "--queue", "broker-b:0")
        error = self.call(*words, status=1, stdin="a\nb\n").stderr
        told = TOLD.replace("rocketbroker: ", "rocketbroker: After 0 messages: ")
        self.assertTrue(error.startswith(told), error)
