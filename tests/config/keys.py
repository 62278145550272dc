"""What holds for each class of options."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.keyed import INT, KeyedOptions


def check_tables(case: SynchronousTestCase, cls: type[KeyedOptions]) -> None:
    """The tables of C{cls} name its attributes, and its defaults are within them."""
    fields = attrs.fields(cls)  # type: ignore[arg-type]
    kinds = {field.name: str(field.type) for field in fields}
    case.assertLessEqual(set(kinds.values()), {"int", "bool", "float", *STRINGS})
    for table in (cls.IRREGULAR, cls.BOUNDS, cls.CHOICES, cls.PATHS, cls.ABOUT):
        case.assertEqual(set(table) - set(kinds), set())
    case.assertEqual(len(cls.keys()), len(kinds))
    options = cls()
    for name, kind in kinds.items():
        value = getattr(options, name)
        if kind == "int":
            low, high = cls.BOUNDS.get(name, INT)
            case.assertTrue(low <= value <= high, name)
    for name, choices in cls.CHOICES.items():
        case.assertIn(getattr(options, name), choices)
    again = cls.from_properties(options.as_properties())
    case.assertEqual(again.as_properties(), options.as_properties())


STRINGS = ("str", "str | None")
