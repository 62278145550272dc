"""Permissions of ACL 1.0."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.permissions import (
    ADMIN_CODES,
    ANY,
    DENY,
    PUB,
    SUB,
    Edition,
    covers,
    needed,
    permission,
    printed,
)
from rocketbroker.auth.request import Asked
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rocketbroker.wire.fastjson import dumps


class PermissionTests(SynchronousTestCase):
    """Texts and bits."""

    def test_texts(self) -> None:
        """Five texts are known; all others are DENY, lower case too."""
        for text, bits in (
            ("PUB", PUB),
            (" SUB ", SUB),
            ("PUB|SUB", PUB | SUB),
            ("SUB|PUB", PUB | SUB),
            ("DENY", DENY),
            ("pub", DENY),
            ("PUB,SUB", DENY),
            ("", DENY),
            (None, DENY),
        ):
            self.assertEqual(permission(text), bits, text)

    def test_covers(self) -> None:
        """DENY covers nothing; ANY is covered by either of the two."""
        self.assertTrue(covers(PUB | SUB, PUB))
        self.assertFalse(covers(PUB, SUB))
        self.assertTrue(covers(SUB, ANY))
        self.assertFalse(covers(DENY | SUB, SUB))
        self.assertFalse(covers(DENY, ANY))

    def test_printed(self) -> None:
        """A retry topic is its group."""
        self.assertEqual(printed("T"), "topic:T")
        self.assertEqual(printed("%RETRY%G"), "group:G")


class NeededTests(SynchronousTestCase):
    """What requests need: codes, fields, and the permissions of either edition."""

    TOPIC_AND_GROUP = (("T", SUB), ("%RETRY%G", SUB))

    def needs(
        self, code: int, edition: Edition = Edition.V5, /, **fields: str
    ) -> tuple[tuple[str, int], ...]:
        """What a request with these fields needs."""
        return needed(Asked(code, fields), edition)

    def test_sends(self) -> None:
        """A send needs PUB on the topic, in each of its forms."""
        for edition in Edition:
            self.assertEqual(self.needs(10, edition, topic="T"), (("T", PUB),))
            self.assertEqual(self.needs(310, edition, b="T"), (("T", PUB),))
            self.assertEqual(self.needs(10, edition), ())

    def test_sendsToRetryTopics(self) -> None:
        """4.9 asks the group that a field names, 5 the one that the topic names."""
        retry = "%RETRY%G"
        for code, topic, group in ((10, "topic", "group"), (310, "b", "a")):
            fields = {topic: retry, group: "H"}
            found = self.needs(code, Edition.V4_9, **fields)
            self.assertEqual(found, (("%RETRY%H", SUB),))
            self.assertEqual(self.needs(code, Edition.V4_9, **{topic: retry}), ())
            self.assertEqual(self.needs(code, **fields), ((retry, SUB),))

    def test_requestsOfFive(self) -> None:
        """Batches and recalls need PUB in 5, and nothing in 4.9; ours are closed."""
        for edition in (Edition.V5, Edition.CLOSED):
            self.assertEqual(self.needs(320, edition, b="T"), (("T", PUB),))
            self.assertEqual(self.needs(370, edition, topic="T"), (("T", PUB),))
            for code in range(50, 55):
                self.assertIn(code, ADMIN_CODES[edition])
        self.assertEqual(self.needs(320, Edition.V4_9, b="T"), ())
        self.assertEqual(self.needs(370, Edition.V4_9, topic="T"), ())

    def test_consumers(self) -> None:
        """Pulls and offsets need topic and group; some only one of them."""
        both = {"topic": "T", "consumerGroup": "G"}
        for code in (11, 15):
            self.assertEqual(self.needs(code, **both), self.TOPIC_AND_GROUP)
        for code in (35, 38):
            self.assertEqual(self.needs(code, **both), (("%RETRY%G", SUB),))
        self.assertEqual(self.needs(36, group="G"), (("%RETRY%G", SUB),))
        self.assertEqual(self.needs(12, **both), (("T", SUB),))
        self.assertEqual(self.needs(11, topic="T"), (("T", SUB),))

    def test_heartbeats(self) -> None:
        """Each group and each topic of the body, once."""
        topics = [SubscriptionData(topic=name) for name in ("T", "%RETRY%G")]
        consumer = ConsumerData(group_name="G", subscription_data_set=topics)
        beat = HeartbeatData(client_id="c", consumer_data_set=[consumer])
        found = needed(Asked(34, {}, dumps(beat)), Edition.V5)
        self.assertEqual(set(found), set(self.TOPIC_AND_GROUP))
        self.assertEqual(len(found), 2)
        with self.assertRaises(RemoteProtocolError):
            needed(Asked(34, {}, b""), Edition.V5)

    def test_others(self) -> None:
        """All other requests need a signature and no permission."""
        for code in (14, 17, 25, 41, 105, 361):
            self.assertEqual(self.needs(code, topic="T", consumerGroup="G"), ())

    def test_administrators(self) -> None:
        """5 has more requests for administrators; that of global addresses is ours."""
        old, new = ADMIN_CODES[Edition.V4_9], ADMIN_CODES[Edition.V5]
        self.assertEqual(set(old), {17, 25, 200, 207, 215})
        self.assertEqual(set(new - old), {513, 50, 51, 52, 53, 54})
