"""Tests of L{rocketbroker.broker.send.send}."""

from __future__ import annotations

from itertools import product

from twisted.internet.defer import Deferred

from rocketbroker.broker.metadata.topics import MAX_CHANGES
from rocketbroker.records.batches import encode_part
from rocketbroker.records.hashing import java_hash
from rocketbroker.wire.command import RESPONSE, Command
from tests.broker.rig import (
    HOST,
    HOST_TEXT,
    UNIQUE,
    Rig,
    answered,
    fields_for,
    send_ext,
)
from tests.broker.send.sending import BATCH, SEND, SEND_V1, SendingCase

#: Properties that the hot way takes, as clients write them.
ORDINARY = (
    f"UNIQ_KEY\x01{UNIQUE}",
    f"UNIQ_KEY\x01{UNIQUE}\x02WAIT\x01true\x02TAGS\x01TagA\x02",
    f"KEYS\x01k1\x02UNIQ_KEY\x01{UNIQUE}\x02WAIT\x01true\x02TAGS\x01TagA",
    f"TAGS\x01Tag\u00fc\x02UNIQ_KEY\x01{UNIQUE}\x02",
    f"UNIQ_KEY\x01{UNIQUE}\x02KEYS\x01a_b c_d\x02",
    f"UNIQ_KEY\x01{UNIQUE}\x02__SHARDINGKEY\x01s\x02",
    'UNIQ_KEY\x01od"d\\\x02A\x01\x02',
)

#: Properties that it leaves to the general way.
UNUSUAL = (
    "UNIQ_KEY\x01first\x02UNIQ_KEY\x01second\x02",
    "UNIQ_KEY\x01x\x02TAGS\x01A\x02TAGS\x01\x02",
    "",
    "WAIT\x01true\x02",
    "UNIQ_KEY\x01\x02",
    "MYUNIQ_KEY\x01x\x02",
    "UNIQ_KEY\x01x\x02MYTAGS\x01y\x02",
    "UNIQ_KEY\x01x\x02DELAY\x010\x02",
    "UNIQ_KEY\x01x\x02POP_CK\x01y\x02",
    "UNIQ_KEY\x01x\x02MSG_REGION\x01elsewhere\x02",
    "UNIQ_KEY\x01x\x02TRACE_ON\x01false\x02CLUSTER\x01other\x02",
    "UNIQ_KEY\x01x\x02TRAN_MSG\x01false\x02",
    "CLUSTER\x01other\x02UNIQ_KEY\x01x\x02TRACE_ON\x01false\x02",
)


class GeneralTests(SendingCase):
    """Sends of any form."""

    def test_stored(self) -> None:
        """All fields of the header become the record's."""
        ext = send_ext(queue_id=2, f="257", g="1234", h="-7", j="3")
        self.rig.ask(SEND, ext, b"hello")
        (stored,) = self.rig.records(2)
        self.assertEqual(
            (stored.topic, stored.queue_id, stored.body), ("T", 2, b"hello")
        )
        self.assertEqual(
            (stored.sys_flag, stored.born_ms, stored.flag, stored.reconsume_times),
            (257, 1234, -7, 3),
        )
        self.assertEqual(stored.born_host, self.rig.connection.peer_host)
        self.assertEqual(
            (stored.store_host, stored.store_ms), (HOST, self.rig.wall_ms())
        )

    def test_answer(self) -> None:
        """The answer names the place, and the id that the client gave."""
        self.rig.ask(SEND, send_ext(), b"hello")
        answer = self.rig.ask(SEND, send_ext(), b"hello")
        position = self.last().position
        self.assertEqual(answer.code, 0)
        self.assertEqual(
            answer.ext,
            {
                "MSG_REGION": "DefaultRegion",
                "TRACE_ON": "true",
                "msgId": f"{HOST_TEXT}{position:016X}",
                "queueId": "0",
                "queueOffset": "1",
                "transactionId": UNIQUE,
            },
        )

    def test_properties(self) -> None:
        """Region, trace switch and cluster are added, others kept, POP_CK removed."""
        ext = send_ext(properties="UNIQ_KEY\x01U\x02POP_CK\x01x\x02A\x01b\x02")
        self.rig.ask(SEND, ext, b"x")
        self.assertEqual(
            self.last().properties,
            {
                "UNIQ_KEY": "U",
                "A": "b",
                "MSG_REGION": "DefaultRegion",
                "TRACE_ON": "true",
                "CLUSTER": "cluster-a",
            },
        )

    def test_settings(self) -> None:
        """Region and trace switch are what the settings say."""
        rig = Rig({"regionId": "here", "traceOn": "false"})
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        answer = rig.ask(SEND, send_ext(), b"x")
        assert answer.ext is not None
        self.assertEqual(
            (answer.ext["MSG_REGION"], answer.ext["TRACE_ON"]), ("here", "false")
        )
        (stored,) = rig.records()
        self.assertEqual(stored.properties["MSG_REGION"], "here")

    def test_uniqueKey(self) -> None:
        """A message without an id gets one."""
        answer = self.rig.ask(SEND, send_ext(properties=""), b"x")
        assert answer.ext is not None
        unique = answer.ext["transactionId"]
        self.assertEqual(len(unique), 32)
        self.assertEqual(self.last().properties["UNIQ_KEY"], unique)

    def test_longNames(self) -> None:
        """Request 10 says the same with long names."""
        ext = fields_for(SEND_V1, send_ext(h="9"))
        self.assertEqual(self.rig.ask(SEND_V1, ext, b"x").code, 0)
        self.assertEqual(self.last().flag, 9)

    def test_hostBits(self) -> None:
        """The bits that tell the form of hosts are the store's, not the client's."""
        self.rig.ask(SEND, send_ext(f="49"), b"x")
        self.assertEqual(self.last().sys_flag, 1)

    def test_multiTag(self) -> None:
        """Messages of a topic with several tags each are marked."""
        self.rig.topic("M", 1, topic_filter_type="MULTI_TAG")
        for _ in range(2):
            self.rig.ask(SEND, send_ext("M"), b"x")
        body = encode_part(0, b"x", b"")
        self.rig.ask(BATCH, send_ext("M", m="true"), body)
        flags = [stored.sys_flag for stored in self.rig.records(topic="M")]
        self.assertEqual(flags, [2, 2, 2])
        self.assertFalse(self.rig.hot(SEND, send_ext("M"), b"x"))

    def test_newTopic(self) -> None:
        """A send that makes its topic is answered when that is in the file, whatever
        changes follow; sends to other topics are answered meanwhile, and go the hot way
        again."""
        rig = Rig({}, threads=True)
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        made = rig.begin(SEND, send_ext("New"), b"body")
        later = rig.begin(SEND, send_ext("Newer"), b"body")
        known = rig.begin(SEND, send_ext("T"), b"body")
        rig.batcher.flush()
        assert isinstance(made, Deferred)
        assert isinstance(later, Deferred)
        assert isinstance(known, Deferred)
        self.assertEqual(getattr(self.successResultOf(known), "code", None), 0)
        self.assertTrue(rig.hot(SEND, send_ext("T"), b"body"))
        self.assertFalse(rig.hot(SEND, send_ext("New"), b"body"))
        self.assertNoResult(made)
        rig.threads.run()
        self.assertEqual(getattr(self.successResultOf(made), "code", None), 0)
        self.assertNoResult(later)
        rig.threads.run()
        self.assertEqual(getattr(self.successResultOf(later), "code", None), 0)
        self.assertIn("Newer", rig.topics.names())

    def test_longTopic(self) -> None:
        """A topic of 127 characters is stored."""
        topic = "x" * 127
        self.assertEqual(self.rig.ask(SEND, send_ext(topic), b"x").code, 0)
        self.assertEqual(self.rig.records(topic=topic)[0].topic, topic)

    def test_refused(self) -> None:
        """What the store refuses is answered with its code and words."""
        answer = self.rig.ask(SEND, send_ext(), b"x" * (4 * 1024 * 1024 + 1))
        self.assertEqual(answer.code, 13)
        self.assertIn("msg body length limit 4194304B", answer.remark or "")

    def test_turn(self) -> None:
        """Nothing is answered before the end of the turn."""
        answer = self.rig.begin(SEND, send_ext(), b"x")
        with self.assertRaises(AssertionError):
            answered(answer)
        self.rig.batcher.flush()


class HotTests(SendingCase):
    """Sends as most come."""

    def test_first(self) -> None:
        """The general way has to approve a queue first."""
        self.assertFalse(self.rig.hot(SEND, send_ext(), b"x"))
        self.approve()
        self.assertTrue(self.rig.hot(SEND, send_ext(), b"x"))
        self.assertFalse(self.rig.hot(SEND, send_ext(queue_id=1), b"x"))

    def test_topicsChange(self) -> None:
        """After a change of topics it approves anew."""
        self.approve()
        self.rig.topic("T", 2)
        self.assertFalse(self.rig.hot(SEND, send_ext(), b"x"))
        self.approve()
        self.assertTrue(self.rig.hot(SEND, send_ext(), b"x"))
        self.rig.topics.delete("T")
        self.assertFalse(self.rig.hot(SEND, send_ext(), b"x"))
        self.assertEqual(self.rig.sending.counters(), [])

    def test_otherTopicsChange(self) -> None:
        """A change of other topics leaves what was approved, and counts of topics that
        are there; after very many changes it approves anew."""
        self.approve()
        self.rig.topic("U", 2)
        self.rig.topic("V", 2)
        self.assertTrue(self.rig.hot(SEND, send_ext(), b"x"))
        self.rig.ask(SEND, send_ext("U"), b"x")
        self.rig.topics.delete("U")
        self.assertTrue(self.rig.hot(SEND, send_ext(), b"x"))
        counted = [sends.queue.topic for sends in self.rig.sending.counters()]
        self.assertEqual(counted, ["T"])
        for _ in range(MAX_CHANGES + 1):
            self.rig.topic("V", 2)
        self.assertFalse(self.rig.hot(SEND, send_ext(), b"x"))

    def both(self, code: int, properties: str) -> tuple[bool, Command, Command]:
        """Send the same by both ways: was it hot, and the two answers."""
        ext = send_ext(properties=properties, f="256", h="5", j="2", k="true")
        ext = fields_for(code, ext)
        general = self.rig.ask(code, ext, b"body")
        taken = self.rig.hot(code, ext, b"body", opaque=77)
        if not taken:
            return False, general, general
        self.rig.batcher.flush()
        (answer,) = self.rig.answers()
        self.assertEqual(answer.opaque, 77)
        return True, general, answer

    def test_same(self) -> None:
        """Both ways store the same and answer the same."""
        for code, properties in product((SEND, SEND_V1), ORDINARY):
            taken, general, hot = self.both(code, properties)
            self.assertTrue(taken, properties)
            one, two = self.rig.records()[-2:]
            self.assertEqual(one.properties, two.properties)
            self.assertEqual(
                (one.body, one.flag, one.sys_flag, one.born_ms, one.reconsume_times),
                (two.body, two.flag, two.sys_flag, two.born_ms, two.reconsume_times),
            )
            self.assertEqual(one.born_host, two.born_host)
            assert general.ext is not None and hot.ext is not None
            self.assertEqual(general.ext.keys(), hot.ext.keys())
            for name in ("transactionId", "MSG_REGION", "TRACE_ON", "queueId"):
                self.assertEqual(general.ext[name], hot.ext[name])
            self.assertEqual(hot.ext["msgId"], f"{HOST_TEXT}{two.position:016X}")

    def test_sameBytes(self) -> None:
        """Requests 310 and 10 are answered with the same bytes and stored alike, and
        the general way does the same with 10."""
        found = []
        for code, hot in ((SEND, True), (SEND_V1, True), (SEND_V1, False)):
            rig = Rig({})
            self.addCleanup(rig.close)
            rig.topic("T", 4)
            rig.ask(code, fields_for(code, send_ext()), b"first")
            answers = []
            # The last has a property without a value, which one way keeps.
            for properties in ORDINARY[:-1]:
                ext = fields_for(code, send_ext(properties=properties, m="FALSE"))
                if hot:
                    self.assertTrue(rig.hot(code, ext, b"body"))
                    rig.batcher.flush()
                    answers.append(rig.connection.answers()[-1])
                else:
                    answers.append(rig.ask(code, ext, b"body"))
            said = [(answer.code, answer.ext, answer.remark) for answer in answers]
            found.append((said, rig.records(), rig.connection.frames))
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[1][:2], found[2][:2])

    def outcome(self, head: str, tail: str) -> tuple[object, ...]:
        """What the hot way makes of properties before and behind a unique key."""
        properties = f"{head}UNIQ_KEY\x01{UNIQUE}\x02{tail}"
        if not self.rig.hot(SEND, send_ext(properties=properties), b"x"):
            return ()
        (draft,) = self.rig.batcher.drafts
        self.rig.batcher.drafts.clear()
        assert isinstance(draft.context, tuple)
        sends = draft.context[3]
        return draft.properties, draft.tag_code, sends.message_type

    def test_rememberedTail(self) -> None:
        """What the message before was like changes nothing."""
        self.approve()
        heads = ["", "KEYS\x01k\x02", "TAGS\x01B\x02", "a_b\x01c\x02"]
        heads += ["DELAY\x011\x02", "__SHARDINGKEY\x01k\x02", "TRAN_MSG\x01true\x02"]
        heads += ["UNIQ_KEY\x01first\x02", "MYTAGS\x01B\x02"]
        tails = ["", "WAIT\x01true\x02", "WAIT\x01true\x02TAGS\x01A", "TAGS\x01\x02"]
        tails += ["__SHARDINGKEY\x01z\x02", "TIMER_DELAY_MS\x011\x02", "DELAY\x012"]
        tails += [
            "UNIQ_KEY\x01last\x02",
            "MYTAGS\x01B\x02",
            "TAGS\x01C\x02a_b\x01c\x02",
        ]
        every = list(product(heads, tails))
        alone = {}
        for number, each in enumerate(every):
            self.outcome("", f"NUMBER\x01{number}\x02")
            alone[each] = self.outcome(*each)
        self.assertEqual(alone["", "WAIT\x01true\x02TAGS\x01A"][1], java_hash("A"))
        self.assertEqual(alone["TAGS\x01B\x02", ""][1], java_hash("B"))
        self.assertEqual(alone["DELAY\x011\x02", ""], ())
        for before, head in product(every, heads):
            each = head, before[1]
            self.outcome(*before)
            self.assertEqual(self.outcome(*each), alone[each], (before, each))

    def test_responseWithTheCode(self) -> None:
        """A response whose code happens to be 310 or 10 is not a send."""
        self.approve()
        for code in (SEND, SEND_V1):
            ext = fields_for(code, send_ext())
            self.assertFalse(self.rig.hot(code, ext, b"x", flag=RESPONSE))

    def test_unusual(self) -> None:
        """Properties that need a closer look are left to the general way."""
        for code, properties in product((SEND, SEND_V1), UNUSUAL):
            self.assertFalse(self.both(code, properties)[0], properties)
            stored = self.rig.records()[-1].properties
            self.assertEqual(stored["CLUSTER"], "cluster-a")
            self.assertEqual(stored["MSG_REGION"], "DefaultRegion")
            self.assertTrue(stored["UNIQ_KEY"])

    def test_tagCodes(self) -> None:
        """The tag code is the hash of the tag."""
        self.approve()
        for properties in ORDINARY[:4]:
            self.rig.hot(SEND, send_ext(properties=properties), b"x")
        codes = [draft.tag_code for draft in self.rig.batcher.drafts]
        self.assertEqual(
            codes, [0, java_hash("TagA"), java_hash("TagA"), java_hash("Tag\u00fc")]
        )
        self.rig.batcher.flush()

    def test_leftToOthers(self) -> None:
        """So are transactional bits, inner batches, and messages without a body."""
        self.approve()
        for code in (SEND, SEND_V1):
            for flag in ("4", "8", "12", "64", "192", "16"):
                ext = fields_for(code, send_ext(f=flag))
                self.assertFalse(self.rig.hot(code, ext, b"x"))
            self.assertFalse(self.rig.hot(code, fields_for(code, send_ext()), b""))
            ext = fields_for(code, send_ext(e="00"))
            self.assertFalse(self.rig.hot(code, ext, b"x"))
        # The names of one are not those of the other.
        self.assertFalse(self.rig.hot(SEND_V1, send_ext(), b"x"))
        self.assertFalse(self.rig.hot(SEND, fields_for(SEND_V1, send_ext()), b"x"))

    def test_specialTopics(self) -> None:
        """Topics with rules of their own always go the general way."""
        self.rig.topic("%RETRY%G", 1)
        self.rig.topic("A", 1, topic_filter_type="MULTI_TAG")
        for topic in ("%RETRY%G", "A"):
            self.rig.ask(SEND, send_ext(topic), b"x")
            self.assertFalse(self.rig.hot(SEND, send_ext(topic), b"x"))

    def test_fifo(self) -> None:
        """Messages with a sharding key are counted apart, either way."""
        self.approve()
        ext = send_ext(properties=f"UNIQ_KEY\x01{UNIQUE}\x02__SHARDINGKEY\x01k\x02")
        self.rig.ask(SEND, ext, b"x")
        self.assertTrue(self.rig.hot(SEND, ext, b"x"))
        self.rig.batcher.flush()
        counts = {count.message_type: count for count in self.rig.sending.counters()}
        self.assertEqual(counts["normal"].messages, 1)
        self.assertEqual(counts["fifo"].messages, 2)

    def test_ways(self) -> None:
        """How many went which way is counted."""
        self.approve()
        self.rig.hot(SEND, send_ext(), b"x")
        self.rig.batcher.flush()
        self.assertEqual(
            (self.rig.sending.hot_sends, self.rig.sending.general_sends), (1, 1)
        )
