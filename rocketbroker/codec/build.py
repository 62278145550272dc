# -*- test-case-name: tests.codec.test_build -*-
"""The form of the codec that runs: compiled or Python.

Python's import prefers a compiled module to the source beside it.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.codec import append

#: Whether it is the compiled one. What is not compiled is slower than ordinary code,
#: and then not used.
COMPILED: Final = not str(append.__file__).endswith(".py")

#: For the log and metrics.
FORM: Final = "compiled" if COMPILED else "pure"
