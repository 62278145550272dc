"""How many examples the property tests of this package try."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

examples: Final = settings(max_examples=100, derandomize=True, deadline=None)
