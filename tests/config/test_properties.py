"""Java's .properties syntax."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis.strategies import dictionaries, text
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.properties import edited, parse, read, render, written
from rocketbroker.errors import ConfigurationError
from tests.examples import examples


class ParseTests(SynchronousTestCase):
    """L{parse} reads what C{java.util.Properties} reads."""

    def test_separators(self) -> None:
        """A key ends at the first equals sign, colon or blank."""
        text = "a=1\nb = 2\nc: 3\nd 4\ne\t=\t5\nf==6\ng:=7\nh = = 8\n"
        self.assertEqual(
            parse(text),
            {
                "a": "1",
                "b": "2",
                "c": "3",
                "d": "4",
                "e": "5",
                "f": "=6",
                "g": "=7",
                "h": "= 8",
            },
        )

    def test_comments(self) -> None:
        """Lines that begin with # or ! after blanks, and blank ones, say nothing."""
        self.assertEqual(
            parse("# a=1\n  ! b=2\n\n \t\f\nc=3 # no comment\n"),
            {
                "c": "3 # no comment",
            },
        )

    def test_lineEnds(self) -> None:
        """Lines end in LF, CR or CRLF, and in nothing else that Python would take."""
        self.assertEqual(
            parse("a=1\rb=2\r\nc=3\x0b\x85\x1c\n"),
            {"a": "1", "b": "2", "c": "3\x0b\x85\x1c"},
        )

    def test_continuation(self) -> None:
        """An odd number of backslashes at the end joins the next line."""
        self.assertEqual(
            parse("a=1,\\\n   2,\\\r\n\t3\nb=x\\\\\nc=\\\n#no comment\n"),
            {"a": "1,2,3", "b": "x\\", "c": "#no comment"},
        )

    def test_continuationAtTheEnd(self) -> None:
        """A backslash that ends the text, and one before a blank line, vanish."""
        self.assertEqual(parse("a=1\\"), {"a": "1"})
        self.assertEqual(parse("a=1\\\n\nb=2"), {"a": "1", "b": "2"})

    def test_escapes(self) -> None:
        """Escapes stand for blanks and for any character; others lose the backslash."""
        self.assertEqual(
            parse("a\\=b\\:c\\ d=\\t\\n\\r\\f\\u4e2d\\q\\\\\\#"),
            {"a=b:c d": "\t\n\r\f中q\\#"},
        )

    def test_surrogates(self) -> None:
        """Two escapes that are halves of one character become that character."""
        self.assertEqual(parse("a=\\ud83d\\ude80"), {"a": "\U0001f680"})
        self.assertEqual(parse("a=\\ud83d"), {"a": "\ufffd"})

    def test_malformedEscape(self) -> None:
        """A \\u without four digits is refused with the place where it stands."""
        error = self.assertRaises(ConfigurationError, parse, "\n#\na=\\u12g4", "f")
        self.assertEqual(str(error), "f, line 3: \\u needs four hexadecimal digits.")

    def test_leadingAndTrailingBlanks(self) -> None:
        """Blanks before a value do not belong to it; those behind do."""
        self.assertEqual(parse("  a =  1  \n"), {"a": "1  "})

    def test_noValue(self) -> None:
        """A key alone has an empty value; so may a value have no key."""
        self.assertEqual(parse("a\n=b\n"), {"a": "", "": "b"})

    def test_lastWins(self) -> None:
        """Of two equal keys the later counts."""
        self.assertEqual(parse("a=1\na=2"), {"a": "2"})


class ReadTests(SynchronousTestCase):
    """L{read} reads a file."""

    def test_latin1(self) -> None:
        """A file is ISO-8859-1."""
        path = self.mktemp()
        Path(path).write_bytes(b"a=\xe4\r\n")
        self.assertEqual(read(path), {"a": "ä"})

    def test_missing(self) -> None:
        """A file that cannot be read is one sentence with its path and the reason."""
        error = self.assertRaises(ConfigurationError, read, "/nowhere/at/all")
        self.assertEqual(
            str(error),
            "Cannot read the settings file /nowhere/at/all: No such file or directory.",
        )

    def test_directory(self) -> None:
        """A directory is no file."""
        error = self.assertRaises(ConfigurationError, read, "/")
        self.assertIn("Is a directory", str(error))

    def test_zeroByte(self) -> None:
        """A path that no system can have is an error in words too."""
        self.assertRaises(ConfigurationError, read, "a\0b")


class RenderTests(SynchronousTestCase):
    """L{render} writes what requests 26 and 319 answer."""

    def test_sorted(self) -> None:
        """One line for each key, sorted."""
        self.assertEqual(render({"b": "2", "a": "x=1"}), "a=x=1\nb=2\n")


class WrittenTests(SynchronousTestCase):
    """L{written} makes files from which L{read} makes the same."""

    def test_plain(self) -> None:
        """What needs no backslash gets none."""
        self.assertEqual(written({"b": "/a b;c", "a": "1"}), b"a=1\nb=/a b;c\n")

    def test_escapes(self) -> None:
        """What would mean something else is escaped, in ASCII."""
        self.assertEqual(
            written({"a b": " x\n\\é=\U0001f680#"}),
            b"a\\ b=\\ x\\n\\\\\\u00e9\\=\\ud83d\\ude80\\#\n",
        )

    @examples()
    @given(dictionaries(text(), text()))
    def test_back(self, properties: dict[str, str]) -> None:
        """Whatever keys and values are written, they are read back."""
        self.assertEqual(parse(written(properties).decode("ascii")), properties)

    @examples()
    @given(text(alphabet="\\u0aF=: \t#!\n\r"))
    def test_anything(self, text: str) -> None:
        """Any text is properties, or refused in words."""
        try:
            parse(text)
        except ConfigurationError as error:
            self.assertIn("hexadecimal", str(error))


class EditedTests(SynchronousTestCase):
    """L{edited} changes values, and nothing else."""

    def test_inPlace(self) -> None:
        """A value changes in its place; comments, order and other lines stay."""
        before = b"# Ours\n\nb : 2\n! k=1\n  a=1\n\tc\td e\n"
        after = b"# Ours\n\nb=7\n! k=1\n  a=1\nc=x y\nk=v\n"
        self.assertEqual(edited(before, {"k": "v", "c": "x y", "b": "7"}), after)

    def test_continued(self) -> None:
        """A value of several lines becomes one line."""
        before = b"a=1,\\\r\n  2,\\\r\n  3\r\nb=1\r\n"
        self.assertEqual(edited(before, {"a": "4"}), b"a=4\r\nb=1\r\n")

    def test_ends(self) -> None:
        """New lines end as the others; a last line without an end gets one."""
        for end in (b"\n", b"\r\n", b"\r"):
            after = b"a=1" + end + b"c=3" + end + b"b=2" + end
            self.assertEqual(edited(b"a=1" + end + b"c=3", {"b": "2"}), after)
        self.assertEqual(edited(b"", {"b": "2"}), b"b=2\n")
        self.assertEqual(edited(b"a=1", {"a": "2"}), b"a=2\n")

    def test_twice(self) -> None:
        """Of two equal keys the later one changes, which counts."""
        self.assertEqual(edited(b"a=1\na=2\nb=3\n", {"a": "9"}), b"a=1\na=9\nb=3\n")

    def test_openEnd(self) -> None:
        """A last line that would go on does not take in what comes behind it."""
        for before in (b"a=1\\", b"a=1\\\n", b"b=2\na=1\\\r\n"):
            found = parse(edited(before, {"c": "3"}).decode("ascii"))
            self.assertEqual((found["a"], found["c"]), ("1", "3"))

    def test_otherBytes(self) -> None:
        """Bytes that are no ASCII stay as they are, UTF-8 in comments for instance."""
        before = "# käse\nä=ö\n".encode()
        self.assertEqual(edited(before, {"a": "ü"}), before + b"a=\\u00fc\n")

    def test_noSecondKey(self) -> None:
        """A value cannot make a second line, nor a key a second value."""
        for evil in ("x\nb=2", "x\rb=2", "x\\", "x\\\nb=2", "\u0085b=2", "x\fb=2"):
            found = parse(edited(b"a=1\nc=1\n", {"a": evil}).decode("ascii"))
            self.assertEqual(found, {"a": evil, "c": "1"})
            found = parse(edited(b"a=1\n", {evil: "3"}).decode("ascii"))
            self.assertEqual(found, {"a": "1", evil: "3"})

    def test_malformed(self) -> None:
        """A file with a key that makes no sense is refused with the line."""
        error = self.assertRaises(
            ConfigurationError, edited, b"a=1\n\\u12=1\n", {"a": "2"}, "f"
        )
        self.assertIn("f, line 2", str(error))

    @examples()
    @given(
        text(alphabet="ab\\=: \t#!\n\r"), dictionaries(text(alphabet="ab= \n"), text())
    )
    def test_anything(self, before: str, changes: dict[str, str]) -> None:
        """Whatever a file holds, afterwards it says the same, and the changes."""
        after = edited(before.encode("ascii"), changes).decode("iso-8859-1")
        self.assertEqual(parse(after), {**parse(before), **changes})
