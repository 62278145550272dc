"""The official gRPC client for Java on a lead: java/grpc/GrpcDriver.java."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from twisted.trial.unittest import SkipTest

from scripts.lab.javabroker import jars
from scripts.lab.javaclient import PROJECT, QUICK, Program, why_not

JAVA_VERSION: Final = "5.0.8"

GRPC_DRIVER: Final = PROJECT / "grpc" / "GrpcDriver.java"


def java_client(
    address: str, folder: Path, *words: str, version: str = JAVA_VERSION
) -> Program:
    """The Java client before the Proxy at an address.

    @param words: C{tls}, for connections as it makes them unless told otherwise, or
        C{plain}; then a name and a secret, for calls that are signed.
    """
    reason = why_not()
    if reason is not None:
        raise SkipTest(reason)
    path = f"{jars(version, 'client-java')}/*"
    home = f"-Duser.home={folder}"
    options = [*QUICK, "-Xmx256m", home, "-cp", path]
    started = ["java", *options, str(GRPC_DRIVER), address, *words]
    return Program(started, folder, f"grpc-java-{version}.log")
