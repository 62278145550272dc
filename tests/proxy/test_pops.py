"""What a receive asks for."""

from __future__ import annotations

from typing import Any

from google.protobuf.duration_pb2 import Duration
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.proxy.messages_pb2 import (
    Code,
    FilterExpression,
    FilterType,
    ReceiveMessageRequest,
    Settings,
)
from rocketbroker.proxy.pops import (
    Wanted,
    filter_of,
    given,
    invisible_ms,
    lets_through,
    order_counts,
    poll_ms,
    pop_command,
)
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.testing.scripted import answer
from tests.client.messages import stored_record

SETTINGS = ProxySettings()


def seconds(count: int) -> Duration:
    """A time span."""
    return Duration(seconds=count)


class TimeTests(SynchronousTestCase):
    """How long a broker may wait, and how long messages are hidden."""

    def poll(self, remaining: float | None, **given: Any) -> int:
        """Of a client of 5.0.8 with time-outs of 3 seconds."""
        request = ReceiveMessageRequest(**given)
        known = Settings(request_timeout=seconds(3))
        return poll_ms(request, known, remaining, "5.0.8", SETTINGS)

    def test_pollIsWhatIsAskedForWithinLimits(self) -> None:
        """From 5 to 20 seconds, and not beyond the deadline."""
        for asked, remaining, wanted in (
            (10, 13.0, 10_000),
            (1, 13.0, 5000),
            (60, 63.0, 20_000),
            (10, 8.0, 8000),
            (10, None, 10_000),
        ):
            found = self.poll(remaining, long_polling_timeout=seconds(asked))
            self.assertEqual(found, wanted)

    def test_pollFollowsFromTheDeadlineOtherwise(self) -> None:
        """Less half of the client's time-out; so Go's clients want it."""
        self.assertEqual(self.poll(13.0), 11_500)
        found = poll_ms(ReceiveMessageRequest(), None, 13.0, "5.0.8", SETTINGS)
        self.assertEqual(found, 11_500)

    def test_deadlineThatIsTooNearIsRefused(self) -> None:
        """By a code that older clients do not know."""
        for version, code in (
            ("5.0.8", Code.ILLEGAL_POLLING_TIME),
            ("5.0.2", Code.BAD_REQUEST),
            ("", Code.BAD_REQUEST),
        ):
            request = ReceiveMessageRequest(long_polling_timeout=seconds(10))
            problem = self.assertRaises(
                Refusal, poll_ms, request, None, 4.9, version, SETTINGS
            )
            self.assertEqual(problem.code, code)

    def test_pushConsumersHaveTheTimeOfTheProxy(self) -> None:
        """Which it renews; without renewal theirs has to be allowed."""
        request = ReceiveMessageRequest(auto_renew=True, invisible_duration=seconds(1))
        self.assertEqual(invisible_ms(request, SETTINGS), 60_000)
        plain = ProxySettings(enable_proxy_auto_renew=False)
        self.assertRaises(Refusal, invisible_ms, request, plain)

    def test_simpleConsumersHaveTheirs(self) -> None:
        """From 10 seconds to 12 hours."""
        request = ReceiveMessageRequest(invisible_duration=seconds(15))
        self.assertEqual(invisible_ms(request, SETTINGS), 15_000)
        for count, words in (
            (9, "the invisibleTime is too small. min is 10000"),
            (43_201, "the invisibleTime is too large. max is 43200000"),
        ):
            request = ReceiveMessageRequest(invisible_duration=seconds(count))
            problem = self.assertRaises(Refusal, invisible_ms, request, SETTINGS)
            self.assertEqual(str(problem), words)


class FilterTests(SynchronousTestCase):
    """Which messages."""

    def test_expressionsAreTakenOrRefused(self) -> None:
        """Tags are split and trimmed; SQL is left to brokers."""
        for kind, text, wanted in (
            (FilterType.TAG, "", ("TAG", "*")),
            (FilterType.FILTER_TYPE_UNSPECIFIED, "*", ("TAG", "*")),
            (FilterType.TAG, " a||b ", ("TAG", "a || b")),
            (FilterType.SQL, "a > 5", ("SQL92", "a > 5")),
        ):
            found = filter_of(FilterExpression(type=kind, expression=text))
            self.assertEqual(found, wanted)
        for kind, text in ((FilterType.SQL, " "), (FilterType.TAG, "||")):
            problem = self.assertRaises(
                Refusal, filter_of, FilterExpression(type=kind, expression=text)
            )
            self.assertEqual(problem.code, Code.ILLEGAL_FILTER_EXPRESSION)

    def test_tagsAreComparedAgain(self) -> None:
        """Brokers compare their hashes."""
        self.assertTrue(lets_through("TAG", "a || b", "b"))
        self.assertTrue(lets_through("TAG", "*", None))
        self.assertTrue(lets_through("SQL92", "a > 5", None))
        self.assertFalse(lets_through("TAG", "a || b", "c"))
        self.assertFalse(lets_through("TAG", "a", None))


class PopTests(SynchronousTestCase):
    """The request, and what its answer brings."""

    def test_requestSaysWhatIsWanted(self) -> None:
        """Of all queues, at most 32 messages."""
        wanted = Wanted(99, 5000, 60_000, "TAG", "*")
        ext = pop_command("T", "G", "b1", wanted, True, "try").ext or {}
        self.assertEqual(ext["maxMsgNums"], "32")
        self.assertEqual((ext["queueId"], ext["initMode"]), ("-1", "1"))
        self.assertEqual((ext["order"], ext["attemptId"]), ("true", "try"))
        self.assertEqual(ext["bornTime"], "0")

    def test_orderedMessagesHaveTheirCounts(self) -> None:
        """By message, else by queue."""
        fields = {
            "popTime": "1700",
            "invisibleTime": "60000",
            "reviveQid": "999",
            "startOffsetInfo": "0 0 5",
            "msgOffsetInfo": "0 0 5,7",
            "orderCountInfo": "0 qo0%7 2;0 0 1",
        }
        body = stored_record(5) + stored_record(7)
        found = given("b1", answer(0, fields, body), True)
        self.assertEqual([one.attempts for one in found], [1, 2])
        self.assertEqual(found[0].handle.receipt.text(), "5 1700 60000 999 0 b1 0 5")
        found = given("b1", answer(0, fields, body), False)
        self.assertEqual([one.attempts for one in found], [0, 0])

    def test_countThatIsNoneIsAnError(self) -> None:
        """Of the broker."""
        self.assertEqual(order_counts(""), {})
        self.assertRaises(RemoteProtocolError, order_counts, "0 0 x")
