"""The words of SQL92 expressions."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering.sqltokens import END, Token, Tokens


def words(text: str) -> list[tuple[str, str]]:
    """Kind and text of all words."""
    tokens = Tokens(text)
    found: list[Token] = []
    while tokens.peek().kind != END:
        found.append(tokens.take())
    return [(token.kind, token.text) for token in found]


class TokensTests(SynchronousTestCase):
    """Text to words."""

    def test_numbers(self) -> None:
        """The longest form counts; after a zero another number begins."""
        self.assertEqual(
            words("0 12 12L 5.5 5. .5 5E10 5e-3 1.5E+2"),
            [("decimal", "0"), ("decimal", "12"), ("decimal", "12L")]
            + [("float", each) for each in "5.5 5. .5 5E10 5e-3 1.5E+2".split()],
        )
        self.assertEqual([text for _, text in words("007")], ["0", "0", "7"])
        self.assertEqual([text for _, text in words("007.5")], ["007.5"])
        self.assertEqual(words("0L"), [("decimal", "0"), ("name", "L")])

    def test_strings(self) -> None:
        """A doubled quote is one; anything else may stand in a string."""
        self.assertEqual(words("'it''s'"), [("string", "it's")])
        self.assertEqual(words("'a\n--b'"), [("string", "a\n--b")])
        self.assertEqual(words("''"), [("string", "")])

    def test_names(self) -> None:
        """Names keep their case, keywords lose it."""
        self.assertEqual(
            words("Not _a$1 betWeen android"),
            [("keyword", "NOT"), ("name", "_a$1")]
            + [("keyword", "BETWEEN"), ("name", "android")],
        )

    def test_symbols(self) -> None:
        """The longest one counts."""
        found = [text for _, text in words("<><=>=<>=(),+-")]
        self.assertEqual(found, ["<>", "<=", ">=", "<>", "=", *"(),+-"])

    def test_comments(self) -> None:
        """Comments separate as blanks do; one to the end of the line needs that end."""
        self.assertEqual(len(words("a -- b c\n /* d\n e */ f")), 2)
        self.assertEqual(words("a -- b")[1:3], [("symbol", "-"), ("symbol", "-")])

    def test_nothing(self) -> None:
        """What begins no word is refused when it is asked for, not before."""
        tokens = Tokens("a ?")
        self.assertEqual(tokens.take().text, "a")
        error = self.assertRaises(SubscriptionParseFailed, tokens.peek)
        self.assertIn("'?' at 2", error.remark)
        self.assertRaises(SubscriptionParseFailed, words, "'open")
        self.assertRaises(SubscriptionParseFailed, words, "/* open")
