"""The generated messages, beside their interface file."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from scripts.proto import GENERATOR, ROOT, generate, has_generator

MADE = ("messages_pb2.py", "messages_pb2.pyi")


class GeneratedTests(SynchronousTestCase):
    """C{scripts/proto.py}."""

    def test_messagesAreMadeOfTheInterfaceFile(self) -> None:
        """By the generator whose protobuf setup.cfg names."""
        if not has_generator():
            raise SkipTest(f"needs grpcio-tools {GENERATOR}: the extra integration")
        with tempfile.TemporaryDirectory() as folder:
            generate(sys.executable, Path(folder))
            for name in MADE:
                place = Path("rocketbroker", "proxy", name)
                new = (Path(folder) / place).read_text("utf-8")
                self.assertEqual(new, (ROOT / place).read_text("utf-8"), name)
