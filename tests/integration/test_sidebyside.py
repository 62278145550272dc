"""What the Java broker and ours answer to the same requests, right and wrong ones."""

from __future__ import annotations

import json
from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from tests.integration import consumers_talk, operators_talk, producers_talk, verbs
from tests.integration.sidebyside import COMPARED, Pair, Side

#: Each conversation, and the questions to which ours answers something else on purpose;
#: what users may see of that is in the README.
CONVERSATIONS: dict[Callable[[Side], None], set[str]] = {
    producers_talk.sends: {
        # It would be a half message that nobody ends, or half of an inner batch.
        *("flag 4", "flag 8", "flag 12", "flag 64"),
    },
    producers_talk.topics_of_sends: {
        # Java divides by zero.
        "send to Name_d0_e-1_TBW102",
    },
    producers_talk.batches: {
        # Java reads beyond the end, or fails when it writes.
        *("one byte", "cut off", "cut off early", "too large"),
        # It takes what it does not do: nobody would be told.
        *("half", "timed", "nothing behind"),
    },
    producers_talk.replies: {
        # As every message it is to have a body there; clients reply without.
        "no body",
    },
    consumers_talk.send_backs: set(),
    consumers_talk.retries: set(),
    consumers_talk.locks: set(),
    consumers_talk.offsets: {
        # Offsets are kept for queues there are.
        *("15: queue beyond", "15: queue negative"),
    },
    consumers_talk.pulls: set(),
    consumers_talk.subscriptions: {
        # A filter that nobody knows lets everything through there.
        "brings a Other",
        # Refused there; consumers stood still.
        "WantG pulls, newer",
    },
    consumers_talk.checks: {
        # Java says the topic where it should say its groups.
        "who",
    },
    consumers_talk.assignments: {"consumerGroup None"},
    operators_talk.topics: {
        # No such permission means anything.
        *("with perm=8", "with perm=8, then", "with perm=-1", "with perm=-1, then"),
    },
    operators_talk.groups: set(),
    operators_talk.resets: set(),
    operators_talk.tables: {
        # Java leaves out where the group pulls.
        "progress, false",
        # It would be checked back, and is no half message.
        "resume another",
    },
    operators_talk.relays: set(),
    # Ten seconds after the tables, as both brokers count by so many.
    operators_talk.figures: set(),
    operators_talk.strangers: {
        # A queue that has no message yet begins at 0.
        "binary offset",
    },
    operators_talk.incomplete: {
        # Java compares with null, and finds that it is not there.
        *("14 without consumerGroup", "15 without consumerGroup"),
        *("15 without topic", "222 without group", "353 without topic"),
    },
}


class SideBySideTests(SynchronousTestCase):
    """Java's broker 5.3.3, and ours."""

    def setUp(self) -> None:
        """Both are there."""
        self.pair = Pair("5.3.3")
        self.addCleanup(self.pair.stop)
        self.pair.start()

    def test_same(self) -> None:
        """Both say the same, but where it is on purpose."""
        found = {}
        for conversation, on_purpose in CONVERSATIONS.items():
            theirs, ours = self.pair.answers(conversation)
            self.assertEqual(list(theirs), list(ours))
            different = {name for name in theirs if theirs[name] != ours[name]}
            for name in different ^ on_purpose:
                found[conversation.__name__, name] = theirs[name], ours[name]
        self.assertEqual(found, {})
        self.assertNotIn("Traceback", self.pair.cluster.logs())
        codes = sorted(self.pair.codes)
        self.assertEqual(codes, json.loads(COMPARED.read_text("utf-8")), codes)
        self.compare_verbs()

    def compare_verbs(self) -> None:
        """The verbs of the command line show the same of both."""
        theirs, ours = (list(verbs.told(names)) for _, names in self.pair.addresses)
        for one, other in zip(theirs, ours, strict=True):
            line, wanted, status, rows = one
            self.assertEqual((line, status, rows), (line, wanted, other[3]))
            self.assertEqual((line, other[2]), (line, wanted))
