"""A standalone Spark cluster on this machine: a master and two workers, loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rocketbroker.spark.sessions import JVM, prepare_environment
from scripts.lab.servers import environment, free_base

#: How long a part of it may take to be there.
READY_SECONDS = 120.0


class SparkCluster:
    """The processes, and how to reach them.

    @ivar master: the address for C{--master}.
    @ivar settings: C{--conf} words with which small applications run there.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rocketbroker-cluster-")
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = ""
        self.settings = (
            "spark.driver.host=127.0.0.1",
            "spark.driver.bindAddress=127.0.0.1",
            "spark.executor.memory=512m",
            "spark.ui.enabled=false",
            f"spark.driver.extraJavaOptions={JVM}",
            f"spark.executor.extraJavaOptions={JVM}",
        )

    def start(self) -> None:
        """Start a master and two workers of one core each, and wait for them."""
        port = free_base()
        self.master = f"spark://127.0.0.1:{port}"
        log = self._launch("master.Master", "--host", "127.0.0.1", "--port", str(port))
        self._wait(log, "I have been elected leader", 1)
        for _ in range(2):
            words = ("--host", "127.0.0.1", "--cores", "1", "--memory", "700m")
            self._launch("worker.Worker", *words, self.master)
        self._wait(log, "Registering worker", 2)

    def variables(self) -> dict[str, str]:
        """The variables under which workers and drivers find Java and Python."""
        prepare_environment(is_local=False)
        import pyspark

        return {
            **environment(),
            "SPARK_HOME": os.path.dirname(pyspark.__file__),
            # Or workers look for it in a directory that only Spark's sources have.
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }

    def _launch(self, name: str, *words: str) -> Path:
        """Start a part; the file with what it says."""
        variables = self.variables()
        folder = Path(self._folder.name)
        log = folder / f"{len(self._processes)}.log"
        jars = os.path.join(variables["SPARK_HOME"], "jars", "*")
        with open(log, "wb") as file:
            process = subprocess.Popen(
                [
                    os.path.join(variables["JAVA_HOME"], "bin", "java"),
                    *("-Xmx256m", *JVM.split()),
                    *("-cp", jars, f"org.apache.spark.deploy.{name}"),
                    *words,
                    *("--webui-port", "0"),
                ],
                env={**variables, "SPARK_WORKER_DIR": str(folder / "work")},
                cwd=folder,
                stdout=file,
                stderr=file,
            )
        self._processes.append(process)
        return log

    def _wait(self, log: Path, words: str, count: int) -> None:
        end = time.monotonic() + READY_SECONDS
        while log.read_text(errors="replace").count(words) < count:
            ended = [each for each in self._processes if each.poll() is not None]
            if ended or time.monotonic() > end:
                raise RuntimeError(log.read_text(errors="replace"))
            time.sleep(0.1)

    def stop(self) -> None:
        """End all of it, executors too; idempotent."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait()
        self._processes = []
        self._folder.cleanup()
