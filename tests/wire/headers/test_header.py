"""Tests of how extension fields are read and written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import SystemFailure
from rocketbroker.wire.headers.header import Boundary, Header, Int, Long
from rocketbroker.wire.headers.pull import PullMessageResponseHeader
from tests.examples import examples


class SampleHeader(Header, kw_only=True):
    """One field of each kind."""

    text: str
    small_number: Int
    large_number: Long | None = None
    truth: bool | None = None
    bound: Boundary = "LOWER"


class HeaderTests(SynchronousTestCase):
    """The rules that all headers share."""

    def test_nullIsLeftOut(self) -> None:
        """A field that is null is not sent."""
        header = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=1, min_offset=2, max_offset=3
        )
        self.assertEqual(
            header.to_ext(),
            {
                "suggestWhichBrokerId": "0",
                "nextBeginOffset": "1",
                "minOffset": "2",
                "maxOffset": "3",
            },
        )

    def test_numbers(self) -> None:
        """A number is decimal, with a sign or without, and fits its type."""
        for text, number in (
            ("5", 5),
            ("+5", 5),
            ("-5", -5),
            ("0000005", 5),
            ("2147483647", 2147483647),
            ("-2147483648", -2147483648),
            ("2147483648", 0),
            ("-2147483649", 0),
            ("", 0),
            (" 5", 0),
            ("5\n", 0),
            ("5.0", 0),
            ("1_000", 0),
            ("0x5", 0),
            ("+", 0),
            ("٣", 0),
            ("9" * 5000, 0),
        ):
            header = SampleHeader.from_ext({"smallNumber": text})
            self.assertEqual(header.small_number, number, text)

    def test_longNumbers(self) -> None:
        """A long number has 64 bits; what is none is null where null is allowed."""
        for text, number in (
            ("9223372036854775807", (1 << 63) - 1),
            ("-9223372036854775808", -(1 << 63)),
            ("9223372036854775808", None),
            ("x", None),
        ):
            header = SampleHeader.from_ext({"largeNumber": text})
            self.assertEqual(header.large_number, number, text)

    def test_booleans(self) -> None:
        """Only the word true, in any case, is true."""
        for text, truth in (
            ("true", True),
            ("TRUE", True),
            ("True", True),
            ("false", False),
            ("1", False),
            ("yes", False),
            ("", False),
            (" true", False),
        ):
            self.assertIs(SampleHeader.from_ext({"truth": text}).truth, truth)

    def test_boundary(self) -> None:
        """Only the word upper, in any case, is the upper bound."""
        for text, bound in (("upper", "UPPER"), ("UPPER", "UPPER"), ("x", "LOWER")):
            self.assertEqual(SampleHeader.from_ext({"bound": text}).bound, bound)

    def test_emptyText(self) -> None:
        """An empty string stays one."""
        self.assertEqual(SampleHeader.from_ext({"text": ""}).text, "")
        self.assertEqual(SampleHeader.lacking({"text": ""}), ["smallNumber"])

    def test_complete(self) -> None:
        """A responder may insist on what is required, but for what it does not need."""
        whole = {"text": "a", "smallNumber": "1"}
        header = SampleHeader.complete(whole)
        self.assertEqual((header.text, header.small_number), ("a", 1))
        for ext, key in (
            ({"text": "a"}, "smallNumber"),
            ({"text": "a", "smallNumber": "x"}, "smallNumber"),
            ({"smallNumber": "1"}, "text"),
        ):
            error = self.assertRaises(SystemFailure, SampleHeader.complete, ext)
            self.assertIn(f"the field {key} is missing", str(error))
            self.assertEqual(
                SampleHeader.complete(ext, [key]), SampleHeader.from_ext(ext)
            )
        self.assertRaises(SystemFailure, SampleHeader.complete, None)

    @examples()
    @given(
        st.text(),
        st.integers(-(1 << 31), (1 << 31) - 1),
        st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
        st.none() | st.booleans(),
        st.sampled_from(["UPPER", "LOWER"]),
    )
    def test_roundTrip(
        self, text: str, small: int, large: int | None, truth: bool | None, bound: str
    ) -> None:
        """What was written is read."""
        header = SampleHeader(
            text=text, small_number=small, large_number=large, truth=truth, bound=bound
        )
        self.assertEqual(SampleHeader.from_ext(header.to_ext()), header)

    @examples()
    @given(
        st.dictionaries(
            st.sampled_from(["text", "smallNumber", "largeNumber", "truth", "bound"]),
            st.text(),
        )
    )
    def test_anything(self, ext: dict[str, str]) -> None:
        """Any fields make a header that can be written."""
        header = SampleHeader.from_ext(ext)
        self.assertEqual(SampleHeader.from_ext(header.to_ext()), header)
