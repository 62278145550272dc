"""What answers may say."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.testing.simulation.model import Model
from rocketbroker.testing.simulation.operations import (
    ASK_AGAIN,
    BUSY,
    INVALID_PARAMETER,
    MOVED,
    NOT_FOUND,
    TOPIC_NOT_EXIST,
    Clean,
    Create,
    Delete,
    Done,
    Found,
    Message,
    Pull,
    Pulled,
    Send,
    Sent,
)

SEGMENT = 1000


def found(offset: int, position: int, body: bytes, tag: str = "") -> Found:
    """A message that was pulled."""
    return Found(offset, position, Message(body, tag))


class ModelCase(SynchronousTestCase):
    """A topic of four queues that a send has made, with messages a, b, c in queue 0."""

    def setUp(self) -> None:
        """Each message has 100 bytes."""
        self.model = Model(SEGMENT, 4)
        self.offset = self.position = 0
        for body, tag in ((b"a", ""), (b"b", "red"), (b"c", "")):
            self.send(body, tag)

    def send(self, body: bytes, tag: str = "") -> None:
        """Send, and have it acknowledged at the next place."""
        ticket = self.model.begin(Send("T", 0, (Message(body, tag),)))
        self.acknowledge(ticket)

    def acknowledge(self, ticket: int) -> None:
        """A send is acknowledged."""
        answer = Sent(0, self.offset, (self.position,))
        self.assertEqual(self.model.end(ticket, answer), [])
        self.offset += 1
        self.position += 100

    def delete(self) -> None:
        """The topic is deleted."""
        self.assertEqual(self.model.end(self.model.begin(Delete("T")), Done(0)), [])
        self.offset = 0

    def good(self, pull: Pull, answer: Pulled) -> None:
        """Such an answer is right."""
        self.assertEqual(self.model.end(self.model.begin(pull), answer), [])

    def wrong(self, why: str, pull: Pull, answer: Pulled) -> None:
        """Such an answer is wrong."""
        (problem,) = self.model.end(self.model.begin(pull), answer)
        self.assertIn(why, problem)


ALL = Pull("T", 0, 0)
A, B, C = found(0, 0, b"a"), found(1, 100, b"b", "red"), found(2, 200, b"c")


class PullTests(ModelCase):
    """Pulls with nothing at the same time."""

    def test_messagesInOrder(self) -> None:
        """Messages from the offset on, as many as the broker gives, at their places."""
        self.good(ALL, Pulled(0, 3, 0, 3, (A, B, C)))
        self.good(ALL, Pulled(0, 1, 0, 3, (A,)))
        self.wrong("offsets [0, 2]", ALL, Pulled(0, 3, 0, 3, (A, C)))
        self.wrong("offsets [0, 0]", ALL, Pulled(0, 1, 0, 3, (A, A)))
        self.wrong("before 1", Pull("T", 0, 1), Pulled(0, 3, 0, 3, (A, B, C)))
        self.wrong("goes on at 3 behind 0", ALL, Pulled(0, 3, 0, 3, (A,)))
        self.wrong("without a message", ALL, Pulled(0, 3, 0, 3))

    def test_placeAndContent(self) -> None:
        """A message stands where it was acknowledged, and is what was sent."""
        moved, strange = found(0, 1, b"a"), found(0, 0, b"z")
        tagged = found(0, 0, b"a", "red")
        self.wrong("stands at (0, 0)", ALL, Pulled(0, 1, 0, 3, (moved,)))
        self.wrong("never sent", ALL, Pulled(0, 1, 0, 3, (strange,)))
        self.wrong("sent otherwise", ALL, Pulled(0, 1, 0, 3, (tagged,)))
        self.wrong("to queue 0", Pull("T", 1, 0), Pulled(0, 1, 0, 0, (A,)))

    def test_filtered(self) -> None:
        """A filter passes over what is not wanted, and over nothing else."""
        red, blue = Pull("T", 0, 0, tags=("red",)), Pull("T", 0, 0, tags=("blue",))
        self.good(red, Pulled(0, 3, 0, 3, (B,)))
        self.wrong("is not wanted", red, Pulled(0, 2, 0, 3, (A, B)))
        self.good(blue, Pulled(ASK_AGAIN, 3, 0, 3))
        self.good(red, Pulled(ASK_AGAIN, 1, 0, 3))
        self.wrong("b'b', acknowledged at offset 1, is hidden", red, AGAIN_AT_3)

    def test_end(self) -> None:
        """At the end nothing is found, behind it the reader is sent back."""
        self.good(Pull("T", 0, 3), Pulled(NOT_FOUND, 3, 0, 3))
        self.good(Pull("T", 0, 9), Pulled(MOVED, 3, 0, 3))
        self.wrong("the queue ends at 3", ALL, Pulled(NOT_FOUND, 0, 0, 3))
        self.wrong("which is in 0 to 3", ALL, Pulled(MOVED, 3, 0, 3))
        self.wrong("not to 3", Pull("T", 0, 9), Pulled(MOVED, 0, 0, 3))
        self.wrong("with code 19", ALL, Pulled(NOT_FOUND, 3, 0, 3, (A,)))
        self.wrong("code 2", ALL, Pulled(2))

    def test_range(self) -> None:
        """The range of a queue holds what was sent, and never goes back."""
        self.wrong("no more than 3 were sent", ALL, Pulled(0, 1, 0, 4, (A,)))
        self.wrong("a range from 2 to 1", ALL, Pulled(NOT_FOUND, 1, 2, 1))
        self.good(ALL, Pulled(0, 1, 0, 3, (A,)))
        self.wrong("0 to 3 was before", ALL, Pulled(0, 1, 0, 2, (A,)))

    def test_visible(self) -> None:
        """A queue may be behind the log, but not behind what was pulled from others."""
        late = Pull("T", 0, 2)
        self.good(late, Pulled(NOT_FOUND, 2, 0, 2))
        self.good(Pull("T", 0, 2), Pulled(0, 3, 0, 3, (C,)))
        self.send(b"d")
        self.good(Pull("T", 0, 3), Pulled(NOT_FOUND, 3, 0, 3))
        self.model.visible = self.model.log_end
        self.wrong("3 is visible", Pull("T", 0, 3), Pulled(NOT_FOUND, 3, 0, 3))

    def test_noQueue(self) -> None:
        """Only a queue that is there is read."""
        refused = Pulled(INVALID_PARAMETER)
        self.good(Pull("T", 4, 0), refused)
        self.wrong("though it is there", ALL, refused)
        self.wrong("no such queue", Pull("T", 4, 0), Pulled(NOT_FOUND))
        self.wrong("no topic", ALL, Pulled(TOPIC_NOT_EXIST))
        self.model.end(self.model.begin(Create("T", 1)), Done(0))
        self.good(Pull("T", 1, 0), refused)

    def test_batches(self) -> None:
        """A batch is pulled whole, from any offset in it; one without a tag may be
        given to all. A queue of batches that is empty has no first offset."""
        ticket = self.model.begin(Create("B", 1, True))
        self.good(Pull("B", 0, 0), Pulled(NOT_FOUND, 0, -1, 0))
        self.assertEqual(self.model.end(ticket, Done(0)), [])
        batch = Send("B", 0, (Message(b"x"), Message(b"y")))
        self.assertEqual(self.model.end(self.model.begin(batch), Sent(0, 0, (9,))), [])
        pair = found(0, 9, b"x"), found(1, 9, b"y")
        self.good(Pull("B", 0, 1), Pulled(0, 2, 0, 2, pair))
        red = Pull("B", 0, 0, tags=("red",))
        self.good(red, Pulled(0, 2, 0, 2, pair))
        self.good(red, Pulled(ASK_AGAIN, 2, 0, 2))
        self.wrong("before 2", Pull("B", 0, 2), Pulled(0, 2, 0, 2, pair))

    def test_sends(self) -> None:
        """A send that is refused, or acknowledged elsewhere than it was pulled, is
        wrong."""
        ticket = self.model.begin(Send("T", 0, (Message(b"d"),)))
        self.assertIn("code 1", self.model.end(ticket, Sent(1))[0])
        ticket = self.model.begin(Send("T", 0, (Message(b"e"),)))
        early = found(3, 300, b"e")
        self.good(Pull("T", 0, 3), Pulled(0, 4, 0, 4, (early,)))
        (problem,) = self.model.end(ticket, Sent(0, 4, (400,)))
        self.assertIn("pulled at 3, 300", problem)

    def test_busySendIsStoredNowhere(self) -> None:
        """A broker may be busy, but then it has not stored the message."""
        ticket = self.model.begin(Send("T", 0, (Message(b"d"),)))
        self.assertEqual(self.model.end(ticket, Sent(BUSY)), [])
        stored = found(3, 300, b"d")
        self.wrong("refused", Pull("T", 0, 3), Pulled(0, 4, 0, 4, (stored,)))

    def test_others(self) -> None:
        """All else is to be done."""
        ticket = self.model.begin(Clean())
        self.assertEqual(len(self.model.end(ticket, Done(1))), 1)


AGAIN_AT_3 = Pulled(ASK_AGAIN, 3, 0, 3)


class DeletionTests(ModelCase):
    """Pulls of a topic that is deleted and made again."""

    def test_afterIts(self) -> None:
        """After the deletion's answer there is no topic, and then the new one."""
        self.delete()
        self.good(ALL, Pulled(TOPIC_NOT_EXIST))
        self.wrong("there is no topic", ALL, Pulled(0, 1, 0, 3, (A,)))
        self.send(b"new")
        self.wrong("is deleted, or", ALL, Pulled(0, 1, 0, 1, (A,)))
        self.good(ALL, Pulled(0, 1, 0, 1, (found(0, 300, b"new"),)))
        self.wrong("no topic, though", ALL, Pulled(TOPIC_NOT_EXIST))

    def test_before(self) -> None:
        """A pull that overlaps the deletion gets the old messages, or none, but not
        some of both topics."""
        tickets = [self.model.begin(ALL) for _ in range(4)]
        self.delete()
        self.send(b"new")
        new = found(0, 300, b"new")
        for answer in (
            Pulled(0, 3, 0, 3, (A, B, C)),
            Pulled(0, 1, 0, 1, (new,)),
            Pulled(TOPIC_NOT_EXIST),
        ):
            self.assertEqual(self.model.end(tickets.pop(), answer), [])
        mixed = Pulled(0, 2, 0, 2, (new, B))
        self.assertEqual(len(self.model.end(tickets.pop(), mixed)), 1)

    def test_underWay(self) -> None:
        """While the deletion is under way either is right; so is what is sent then, on
        either side, and once that is known, there alone."""
        deletion = self.model.begin(Delete("T"))
        self.good(ALL, Pulled(0, 3, 0, 3, (A, B, C)))
        self.good(ALL, Pulled(TOPIC_NOT_EXIST))
        self.offset = 0
        self.send(b"d")
        self.assertEqual(self.model.end(deletion, Done(0)), [])
        late = found(0, 300, b"d")
        self.good(ALL, Pulled(NOT_FOUND, 0, 0, 0))
        self.good(ALL, Pulled(0, 1, 0, 1, (late,)))
        self.send(b"e")
        self.good(ALL, Pulled(0, 2, 0, 2, (late, found(1, 400, b"e"))))

    def test_otherNumberOfQueues(self) -> None:
        """The new topic has the queues that it was made with."""
        self.delete()
        ticket = self.model.begin(Create("T", 2))
        self.good(Pull("T", 1, 0), Pulled(NOT_FOUND))
        self.good(Pull("T", 3, 0), Pulled(INVALID_PARAMETER))
        self.assertEqual(self.model.end(ticket, Done(0)), [])
        self.wrong("no such queue", Pull("T", 3, 0), Pulled(NOT_FOUND))


class ExpiryTests(ModelCase):
    """Segments of the log that are removed."""

    def test_wholeSegments(self) -> None:
        """The queue begins where a segment does, and the last one stays."""
        for number in range(3, 15):
            self.send(b"%d" % number)
        early, here = Pull("T", 0, 0), Pull("T", 0, 10)
        rest = tuple(found(n, 100 * n, b"%d" % n) for n in range(10, 15))
        self.wrong("not all of its segment", early, Pulled(MOVED, 5, 5, 15))
        self.wrong("in the last segment", early, Pulled(MOVED, 12, 12, 15))
        self.good(early, Pulled(0, 15, 0, 15, rest))
        self.good(early, Pulled(MOVED, 10, 10, 15))
        self.good(here, Pulled(0, 15, 10, 15, rest))
        self.wrong("10 to 15 was before", early, Pulled(0, 15, 0, 15, rest))
        self.wrong("is hidden", here, Pulled(0, 15, 10, 15, rest[1:]))

    def test_segmentLostWhilePulled(self) -> None:
        """A filter may miss messages of a segment that goes meanwhile, but not find
        them later."""
        for number in range(3, 25):
            self.send(b"%d" % number, "red")
        red = Pull("T", 0, 0, tags=("red",))
        rest = [found(n, 100 * n, b"%d" % n, "red") for n in range(3, 25)]
        under_way = self.model.begin(red)
        self.good(red, Pulled(0, 25, 0, 25, (B, *rest[:9], *rest[17:])))
        self.wrong("where some are lost", red, Pulled(0, 25, 0, 25, (B, *rest)))
        self.assertEqual(
            self.model.end(under_way, Pulled(0, 25, 0, 25, (B, *rest))), []
        )
        self.good(red, Pulled(0, 25, 20, 25, tuple(rest[17:])))
        self.wrong("is hidden", red, Pulled(0, 25, 20, 25, tuple(rest[18:])))
