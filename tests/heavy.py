"""Whether heavy tests run in their large form: C{python3 scripts/test.py --heavy}."""

from __future__ import annotations

import os
from typing import Final

#: A test that has a large form looks at this, and runs a small one otherwise.
HEAVY: Final = os.environ.get("ROCKETBROKER_HEAVY_TESTS") == "1"
