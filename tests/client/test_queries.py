"""Messages that are found by a key or an id."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.received import MessageView
from rocketbroker.errors import ConfigurationError, ConnectionLost, TopicNotExist
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster

#: The address that is in offset ids.
BROKER = "10.0.0.9"


class QueryTests(SynchronousTestCase):
    """Two brokers, of which one is where its offset ids say."""

    def setUp(self) -> None:
        self.here = ClientCluster(BROKER, "b2")
        self.runtime = self.here.runtime
        self.mq = self.here.session()

    def put(self, body: str, keys: str = "k", broker: str = BROKER) -> None:
        """Store a message."""
        text = {"KEYS": keys, "UNIQ_KEY": f"id-{body}"}
        self.here.broker(broker).put("T", 0, body.encode(), text)

    def find(self, topic: str = "T", **words: Any) -> list[MessageView]:
        """What is found."""
        return self.runtime.finish(self.mq.find(topic, **words))

    def texts(self, **words: Any) -> list[str]:
        """The bodies of what is found."""
        return [message.text for message in self.find(**words)]

    def test_keyIsLookedUpAtAllBrokers(self) -> None:
        """One of several that a message has; by store time."""
        self.put("1", "k x")
        self.put("2", "x")
        self.put("3", "k")
        self.put("4", "k", "b2")
        found = self.find(key="k")
        self.assertEqual([one.text for one in found], ["1", "4", "3"])
        places = [(one.queue.broker, one.offset) for one in found]
        self.assertEqual(places, [(BROKER, 0), ("b2", 0), (BROKER, 2)])
        self.assertEqual(self.texts(key="y"), [])

    def test_newestAreGivenIfThereAreMore(self) -> None:
        """And only those of a time."""
        for number in range(5):
            self.put(str(number))
        self.assertEqual(self.texts(key="k", max_messages=2), ["3", "4"])
        # The puppet stores the first at 1 s, and each next one 1 ms later.
        self.assertEqual(self.texts(key="k", begin=1.001, end=1.003), ["1", "2", "3"])
        moment = datetime.fromtimestamp(1.004, UTC)
        self.assertEqual(self.texts(key="k", begin=moment), ["4"])

    def test_manyAreAskedForPageByPage(self) -> None:
        """A broker tells 64 at once."""
        for number in range(150):
            self.put(str(number))
        found = self.texts(key="k", max_messages=140)
        self.assertEqual(found, [str(number) for number in range(10, 150)])

    def test_idOfASendIsFound(self) -> None:
        """And so is each of its offset ids."""
        result = self.runtime.finish(self.mq.send("T", "x" * 5000, keys="k"))
        self.put("noise")
        (found,) = self.find(message_id=result.message_id)
        self.assertEqual((found.body, found.keys), (b"x" * 5000, ["k"]))
        (again,) = self.find(message_id=found.stored.offset_id)
        self.assertEqual(again.message_id, result.message_id)

    def test_idOfNothingFindsNothing(self) -> None:
        """Strangers' addresses are not asked, and places that hold no message are not
        the end of the search."""
        self.put("1")
        (found,) = self.find(key="k")
        code = RequestCode.VIEW_MESSAGE_BY_ID
        for place, asked in ((found.stored.offset_id[:-1] + "1", 1), ("0" * 32, 0)):
            before = self.runtime.codes().count(code)
            self.assertEqual(self.texts(message_id=place), [])
            self.assertEqual(self.runtime.codes().count(code) - before, asked)
        self.assertEqual(self.texts(message_id="no id"), [])

    def test_brokerThatIsAwayIsTold(self) -> None:
        """Unless the message was found elsewhere."""
        self.put("1")
        self.here.cluster.stop("b2")
        with self.assertRaises(ConnectionLost):
            self.find(key="k")
        with self.assertRaises(ConnectionLost):
            self.find(message_id="id-2")
        self.assertEqual(self.texts(message_id="id-1"), ["1"])

    def test_mistakesAreTold(self) -> None:
        """Key or id, and a topic that is there."""
        for words in (
            {},
            {"key": "k", "message_id": "i"},
            {"key": 5},
            {"key": "k", "begin": "yesterday"},
        ):
            with self.assertRaises(ConfigurationError):
                self.find(**words)
        with self.assertRaises(TopicNotExist):
            self.find("Unknown", key="k")
