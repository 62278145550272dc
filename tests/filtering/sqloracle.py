"""SQL92 expressions by a parser library and a walk over its tree: slow, and by another
way than ours, so that both are hardly wrong in the same place.

Only for whole expressions: what follows one is not ignored here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from lark import Lark, Tree
from lark.exceptions import LarkError

from rocketbroker.filtering.sqlvalues import order

GRAMMAR = r"""
start: disjunction
?disjunction: conjunction (_OR conjunction)*
?conjunction: equality (_AND equality)*
?equality: comparison
    | equality "=" comparison               -> same
    | equality _DIFFERS comparison          -> differs
    | equality _IS _NULL                    -> absent
    | equality _IS _NOT _NULL               -> present
?comparison: unary
    | comparison ORDER unary                -> ordered
    | comparison SEARCH STRING              -> search
    | comparison _NOT SEARCH STRING         -> nosearch
    | comparison _BETWEEN unary _AND unary  -> between
    | comparison _NOT _BETWEEN unary _AND unary     -> notbetween
    | comparison _IN "(" STRING ("," STRING)* ")"   -> among
    | comparison _NOT _IN "(" STRING ("," STRING)* ")" -> notamong
?unary: "+" unary                           -> plus
    | "-" unary                             -> minus
    | _NOT unary                            -> negation
    | primary
?primary: STRING -> string
    | FLOAT      -> double
    | DECIMAL    -> decimal
    | _TRUE      -> true
    | _FALSE     -> false
    | _NULL      -> null
    | NAME       -> property
    | "(" disjunction ")"
_DIFFERS.9: "<>"
ORDER: ">=" | "<=" | ">" | "<"
SEARCH.9: /(CONTAINS|STARTSWITH|ENDSWITH)(?![\w$])/i
STRING: /'(''|[^'])*'/
FLOAT.3: /([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/
DECIMAL.2: /0|[1-9][0-9]*[lL]?/
NAME: /[A-Za-z_$][A-Za-z0-9_$]*/
%ignore /[ \t\n\r\f]+/
%ignore /--[^\n\r]*[\n\r]/
%ignore /\/\*.*?\*\//s
""" + "\n".join(
    f"_{word}.9: /{word}(?![\\w$])/i"
    for word in "NOT AND OR BETWEEN IN TRUE FALSE NULL IS".split()
)

_parser = Lark(GRAMMAR, parser="earley", lexer="basic")

CONDITIONS = {
    "same", "differs", "absent", "present", "ordered", "search", "nosearch", "between",
    "notbetween", "among", "notamong", "negation", "disjunction", "conjunction", "true",
    "false",
}  # fmt: skip


class Refused(Exception):
    """It is no expression."""


class Undecided(Exception):
    """It cannot be evaluated for these properties."""


def tree_of(expression: str) -> Tree[Any]:
    """The checked tree of an expression.

    @raise Refused: there is none.
    """
    try:
        tree = _parser.parse(expression).children[0]
    except LarkError as error:
        raise Refused(str(error)) from error
    assert isinstance(tree, Tree)
    check(tree)
    condition(tree)
    return tree


def matches(tree: Tree[Any], properties: Mapping[str, str]) -> bool:
    """Whether an expression wants a message."""
    try:
        return truth(tree, properties) is True
    except Undecided:
        return False


def literal(tree: Tree[Any]) -> tuple[str, Any] | None:
    """Type and value of a literal: decimal, double, string, boolean, null."""
    children: list[Any] = tree.children
    if tree.data == "plus":
        return literal(children[0])
    if tree.data in ("true", "false"):
        return "boolean", tree.data == "true"
    if tree.data == "null":
        return "null", None
    if tree.data == "string":
        return "string", children[0][1:-1].replace("''", "'")
    if tree.data == "double":
        return "double", float(children[0])
    if tree.data == "decimal":
        number = int(children[0].rstrip("lL"))
        return "integer" if number <= 2147483647 else "long", number
    return None


def condition(tree: Tree[Any]) -> None:
    """Whether it can stand where a condition is wanted."""
    if tree.data == "plus":
        condition(tree.children[0])
    elif tree.data not in CONDITIONS | {"null", "property"}:
        raise Refused(f"{tree.data} is no condition")


def check(tree: Tree[Any]) -> None:
    """All that is refused before it is evaluated."""
    parts = [each for each in tree.children if isinstance(each, Tree)]
    for part in parts:
        check(part)
    literals = [literal(part) for part in parts]
    if tree.data in ("disjunction", "conjunction", "negation"):
        for part in parts:
            condition(part)
    found = literal(tree)
    if found is not None and tree.data == "decimal" and found[1] >= 1 << 63:
        raise Refused("64 bits")
    if found is not None and tree.data == "double" and found[1] in (0, math.inf):
        raise Refused("a double")
    if tree.data in ("same", "differs"):
        kinds = [each[0] if each else "" for each in literals]
        if "null" in kinds:
            raise Refused("NULL")
        if kinds[0] == "boolean" and kinds[1] not in ("", "boolean"):
            raise Refused("boolean")
    if tree.data in ("ordered", "between", "notbetween"):
        for part in parts:
            inner = stripped(part)
            kind = literal(inner)
            if kind is not None and kind[0] in ("string", "boolean", "null"):
                raise Refused("no order")
            if inner.data in CONDITIONS:
                raise Refused("no order")
    if tree.data == "between":
        low, high = literals[1:]
        if low is not None and high is not None and high[1] < low[1]:
            raise Refused("empty")
    if tree.data in ("among", "notamong") and stripped(parts[0]).data != "property":
        raise Refused("IN")


def stripped(tree: Tree[Any]) -> Tree[Any]:
    """Without signs that change nothing."""
    while tree.data == "plus":
        tree = tree.children[0]
    return tree


def truth(tree: Tree[Any], properties: Mapping[str, str]) -> bool | None:
    """A condition's value."""
    tree = stripped(tree)
    if tree.data == "property":
        return False if str(tree.children[0]) in properties else None
    value = value_of(tree, properties)
    return None if value is None else bool(value[1])


def value_of(tree: Tree[Any], properties: Mapping[str, str]) -> tuple[str, Any] | None:
    """Type and value; None for nothing."""
    found = literal(tree)
    if found is not None:
        return None if found[0] == "null" else found
    children: list[Any] = tree.children
    if tree.data == "plus":
        return value_of(children[0], properties)
    if tree.data == "property":
        text = properties.get(children[0])
        return None if text is None else ("string", text)
    if tree.data == "minus":
        value = value_of(children[0], properties)
        if value is None or value[0] in ("string", "boolean"):
            return None
        return value[0], -value[1]
    result = logic(tree, properties)
    return None if result is None else ("boolean", result)


def logic(tree: Tree[Any], properties: Mapping[str, str]) -> bool | None:
    """What the words between operands say."""
    children: list[Any] = tree.children
    if tree.data == "negation":
        value = truth(children[0], properties)
        return None if value is None else not value
    if tree.data in ("disjunction", "conjunction"):
        decides = tree.data == "disjunction"
        unknown = False
        for child in children:
            value = truth(child, properties)
            if value is decides:
                return decides
            unknown = unknown or value is None
        return None if unknown else not decides
    first = value_of(children[0], properties)
    if tree.data in ("absent", "present"):
        return (first is None) == (tree.data == "absent")
    if tree.data in ("search", "nosearch"):
        part = children[-1][1:-1].replace("''", "'")
        if first is None or first[0] != "string" or part == "":
            return False
        text = first[1]
        word = str(children[1]).upper()
        at: bool = {
            "CONTAINS": part in text,
            "STARTSWITH": text[: len(part)] == part,
            "ENDSWITH": text[-len(part) :] == part,
        }[word]
        return at == (tree.data == "search")
    if tree.data in ("among", "notamong"):
        if first is None:
            return None
        some = [each[1:-1].replace("''", "'") for each in children[1:]]
        is_among: bool = first[1] in some
        return is_among == (tree.data == "among")
    return compared(tree, first, properties)


def compared(
    tree: Tree[Any], first: tuple[str, Any] | None, properties: Mapping[str, str]
) -> bool | None:
    """Comparisons."""
    children: list[Any] = tree.children
    if tree.data in ("between", "notbetween"):
        inside = tree.data == "between"
        words = (">=", "<=") if inside else ("<", ">")
        results = []
        for word, bound in zip(words, children[1:], strict=True):
            other = value_of(bound, properties)
            result = ordered(word, first, other)
            if result is (not inside):
                return result
            results.append(result)
        return None if None in results else inside
    second = value_of(children[-1], properties)
    if tree.data == "ordered":
        return ordered(str(children[1]), first, second)
    if first is None:
        same: bool | None = True if second is None else None
    elif second is None:
        same = False
    elif first[0] == second[0] == "string":
        same = first[1] == second[1]
    else:
        same = java_compare(first, second) == 0
    return same if tree.data == "same" or same is None else not same


def ordered(
    word: str, first: tuple[str, Any] | None, second: tuple[str, Any] | None
) -> bool | None:
    """Greater or less."""
    if first is None or second is None:
        return None
    if first[0] == second[0] == "string":
        first, second = number(first[1], "double"), number(second[1], "double")
    result = java_compare(first, second)
    return {
        ">": result > 0,
        ">=": result >= 0,
        "<": result < 0,
        "<=": result <= 0,
    }[word]


def java_compare(first: tuple[str, Any], second: tuple[str, Any]) -> int:
    """As Java compares objects."""
    if first[0] == "boolean":
        if second[0] == "string":
            raise Undecided
        return 0 if second == first else -1
    if second[0] == "boolean":
        is_same = first[0] == "string" and (first[1].lower() == "true") == second[1]
        return 0 if is_same else -1
    if first[0] == "string":
        first = number(first[1], second[0])
    elif second[0] == "string":
        second = number(second[1], first[0])
    if "double" in (first[0], second[0]):
        return order(float(first[1]), float(second[1]))
    one, other = int(first[1]), int(second[1])
    return (one > other) - (one < other)


def number(text: str, kind: str) -> tuple[str, Any]:
    """A string as a number of a type."""
    if kind == "double":
        try:
            if re.fullmatch(r"[\x01 0-9.eE+-]*", text) is None:
                raise ValueError
            return kind, float(text.strip("\x01 "))
        except ValueError:
            raise Undecided from None
    if re.fullmatch("[+-]?[0-9]+", text) is None:
        raise Undecided
    value = int(text)
    limit = 1 << (31 if kind == "integer" else 63)
    if not -limit <= value < limit:
        raise Undecided
    return kind, value
