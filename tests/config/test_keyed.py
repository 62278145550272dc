"""From keys and texts to typed attributes."""

from __future__ import annotations

from typing import ClassVar

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.keyed import KeyedOptions, did_you_mean, key_of, unknown
from rocketbroker.errors import ConfigurationError


@attrs.frozen(kw_only=True, eq=False)
class Sample(KeyedOptions):
    """One attribute of each kind."""

    IRREGULAR: ClassVar = {"broker_ip1": "brokerIP1"}
    BOUNDS: ClassVar = {"small": (1, 5)}
    CHOICES: ClassVar = {"role": ("A", "B")}

    whole_number: int = 7
    small: int = 1
    switch: bool = False
    ratio: float = 0.8
    broker_ip1: str = "1.2.3.4"
    path: str | None = None
    role: str = "A"
    fixed: str = attrs.field(default="05", init=False)


class KeyTests(SynchronousTestCase):
    """Keys and attributes."""

    def test_regular(self) -> None:
        """A regular attribute gives its key."""
        self.assertEqual(key_of("wait_time_in_queue"), "waitTimeInQueue")

    def test_irregular(self) -> None:
        """An irregular key stands in the table of the class."""
        self.assertEqual(
            list(Sample.keys()),
            [
                "wholeNumber",
                "small",
                "switch",
                "ratio",
                "brokerIP1",
                "path",
                "role",
                "fixed",
            ],
        )

    def test_unknown(self) -> None:
        """What no class knows is found."""
        self.assertEqual(
            unknown({"wholeNumber": "x", "other": "1"}, [Sample]), {"other": "1"}
        )


class BindingTests(SynchronousTestCase):
    """L{KeyedOptions.from_properties}."""

    def one(self, key: str, text: str) -> Sample:
        """Options made from a single setting."""
        return Sample.from_properties({key: text}, "file")

    def refusal(self, key: str, text: str) -> str:
        """Why a setting is refused."""
        return str(self.assertRaises(ConfigurationError, self.one, key, text))

    def test_defaults(self) -> None:
        """What is not set has its default, or the program's."""
        options = Sample.from_properties({"other": "1"}, small=3)
        self.assertEqual(
            (options.whole_number, options.small, options.path), (7, 3, None)
        )

    def test_fileOverProgram(self) -> None:
        """The file wins over the program's default."""
        self.assertEqual(Sample.from_properties({"small": "2"}, small=3).small, 2)

    def test_types(self) -> None:
        """Each type is read from its text."""
        self.assertEqual(self.one("wholeNumber", "-12").whole_number, -12)
        self.assertEqual(self.one("wholeNumber", "+12").whole_number, 12)
        self.assertIs(self.one("switch", "TRUE").switch, True)
        self.assertIs(self.one("switch", "false").switch, False)
        self.assertEqual(self.one("ratio", "0.25").ratio, 0.25)
        self.assertEqual(self.one("brokerIP1", "::1").broker_ip1, "::1")
        self.assertEqual(self.one("path", "/x").path, "/x")
        self.assertEqual(self.one("role", "B").role, "B")

    def test_trimmed(self) -> None:
        """Blanks around a value do not count."""
        self.assertEqual(self.one("path", " /x\t").path, "/x")
        self.assertEqual(self.one("wholeNumber", "12 ").whole_number, 12)

    def test_badNumbers(self) -> None:
        """What is not a whole number is refused in one sentence."""
        for text in ("", "1.5", "0x10", "1_000", "\u0661", "1e3", "1 2", "9" * 5000):
            self.assertEqual(
                self.refusal("wholeNumber", text),
                f"file: wholeNumber cannot be {text!r}: it must be a whole number.",
            )

    def test_bounds(self) -> None:
        """A number must lie in its bounds, by default those of Java's int."""
        self.assertEqual(
            self.refusal("small", "6"),
            "file: small cannot be '6': it must lie between 1 and 5.",
        )
        self.assertEqual(self.one("small", "5").small, 5)
        self.refusal("wholeNumber", str(2**31))
        self.assertEqual(self.one("wholeNumber", str(-(2**31))).whole_number, -(2**31))

    def test_badBooleans(self) -> None:
        """Only true and false are booleans."""
        for text in ("yes", "1", ""):
            self.assertEqual(
                self.refusal("switch", text),
                f"file: switch cannot be {text!r}: it must be true or false.",
            )

    def test_badDecimals(self) -> None:
        """Only digits with a point are decimal numbers."""
        for text in ("nan", "inf", "", "."):
            self.assertEqual(
                self.refusal("ratio", text),
                f"file: ratio cannot be {text!r}: it must be a decimal number.",
            )

    def test_choices(self) -> None:
        """A string that is not free has its list."""
        self.assertEqual(
            self.refusal("role", "C"),
            "file: role cannot be 'C': it must be one of A, B.",
        )

    def test_notSettable(self) -> None:
        """A key without a setter is known and printed but keeps its value."""
        options = self.one("fixed", "06")
        self.assertEqual(options.fixed, "05")
        self.assertEqual(unknown({"fixed": "06"}, [Sample]), {})

    def test_changed(self) -> None:
        """A copy has the new values and keeps the others."""
        options = self.one("small", "2")
        self.assertEqual(options.changed({"path": "/y"}).small, 2)
        self.assertEqual(options.changed({"path": "/y"}).path, "/y")
        self.assertIs(options.changed({"other": "1"}), options)

    def test_didYouMean(self) -> None:
        """A key that is not known may be like one that is."""
        known = ["mappedFileSizeCommitLog", "brokerIP1", "listenPort"]
        for key, meant in (
            ("mapedFileSizeCommitLog", "mappedFileSizeCommitLog"),
            ("MAPPEDFILESIZECOMMITLOG", "mappedFileSizeCommitLog"),
            ("brokerIp", "brokerIP1"),
        ):
            self.assertEqual(did_you_mean(key, known), f" Did you mean {meant}?")
        for key in ("color", "", "storeType"):
            self.assertEqual(did_you_mean(key, known), "")

    def test_asProperties(self) -> None:
        """All values are printed as RocketMQ prints them, nulls left out."""
        self.assertEqual(
            Sample().as_properties(),
            {
                "wholeNumber": "7",
                "small": "1",
                "switch": "false",
                "ratio": "0.8",
                "brokerIP1": "1.2.3.4",
                "role": "A",
                "fixed": "05",
            },
        )
