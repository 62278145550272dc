"""Tests of L{rocketbroker.codec.build}."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.codec import append, batches, build, keys, scanning, sends

#: By this variable the runner of the tests says which form is to run.
VARIABLE = "ROCKETBROKER_FORM"


class FormTests(SynchronousTestCase):
    """The tests run on the form that they are meant for."""

    def test_form(self) -> None:
        """All modules of the codec have the form that the runner asked for, which is
        the pure one if it asked for none."""
        expected = os.environ.get(VARIABLE, "pure")
        self.assertEqual(build.FORM, expected)
        for module in (append, batches, keys, scanning, sends):
            is_source = str(module.__file__).endswith(".py")
            self.assertEqual(is_source, expected == "pure", module)
        self.assertEqual(build.COMPILED, expected == "compiled")
