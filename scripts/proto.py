#!/usr/bin/env python3
"""Make rocketbroker/proxy/messages_pb2.py of messages.proto beside it.

    python3 scripts/proto.py [--into DIR]

The generator is fixed: what it makes works with its protobuf and all newer ones, and
setup.cfg names that as the oldest one. It goes into an environment of its own. Standard
library only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

#: It generates for protobuf 6.31.1.
GENERATOR: Final = "1.76.0"

SOURCE: Final = "rocketbroker/proxy/messages.proto"


def generate(python: str, into: Path) -> None:
    """Write C{messages_pb2.py} and its types below C{into}.

    @param python: one that has the generator.
    """
    into.mkdir(parents=True, exist_ok=True)
    command = [python, "-m", "grpc_tools.protoc", f"-I{ROOT}"]
    command += [f"--python_out={into}", f"--pyi_out={into}", str(ROOT / SOURCE)]
    subprocess.run(command, check=True)


def main() -> int:
    """Generate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rocketbroker-proto-") as made:
        venv.create(made, with_pip=True)
        python = str(Path(made) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, f"grpcio-tools == {GENERATOR}"], check=True)
        generate(python, words.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
