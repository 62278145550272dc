# -*- test-case-name: tests.testing.test_contracts -*-
"""The base of contract suites: a test case for the type checker, and nothing else.

Trial runs each test case that it finds in a module, imported ones too. A suite that is
one would run by itself, without an implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase

    Contract = SynchronousTestCase
else:
    Contract = object
