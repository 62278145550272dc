"""The example programs of the documentation, as a user runs them."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from scripts import walk_pages
from scripts.lab.servers import ROOT, environment, free_base
from tests.missing import needs

#: How long a program may take; nothing is asserted about it.
SECONDS = 180.0

#: What a program of a page prints: a comment behind C{print}.
PRINTED = re.compile(r"print\(.*\)  # (.+)$", re.MULTILINE)


def programs(page: str) -> list[str]:
    """The programs of a page."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return [
        "\n".join(block.lines) + "\n"
        for block in walk_pages.blocks(text)
        if walk_pages.kind_of(block) == "python"
    ]


class ExampleTests(SynchronousTestCase):
    """Against `rocketbroker standalone --temporary`."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
        base = free_base()
        self.metrics_port = base + 5
        self.http_port = base + 15
        self.names = f"127.0.0.1:{base}"
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            self.broker = subprocess.Popen(
                [
                    *(sys.executable, "-m", "rocketbroker.cli.command", "standalone"),
                    *("--temporary", "--namesrv-port", str(base)),
                    *(
                        "--port",
                        str(base + 10),
                        "--metrics-port",
                        str(self.metrics_port),
                    ),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment(),
            )
        self.addCleanup(self.stop)
        end = time.monotonic() + SECONDS
        while b"ready: name server" not in self.log.read_bytes():
            self.assertIsNone(self.broker.poll(), self.log.read_text())
            self.assertLess(time.monotonic(), end, self.log.read_text())
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop the broker."""
        self.broker.terminate()
        self.broker.wait(SECONDS)
        shutil.rmtree(self.folder)

    def test_orders(self) -> None:
        """Each paid order is billed once, though one failed; nothing is left."""
        program = ROOT / "docs" / "examples" / "orders.py"
        done = subprocess.run(
            [sys.executable, str(program), self.names],
            capture_output=True,
            text=True,
            env=environment(),
            cwd=self.folder,
            timeout=SECONDS,
        )
        self.assertEqual(done.stderr, "")
        self.assertEqual(
            done.stdout,
            "billed 20 orders, 20 different ones\nbilling has 0 messages left\n",
        )

    def variables(self) -> dict[str, str]:
        """Those of a user with an empty home directory, and this broker."""
        home = {"HOME": str(self.folder), "ROCKETMQ_NAMESRV": self.names}
        return {**environment(), **home}

    @contextmanager
    def service(self, *words: str) -> Iterator[Path]:
        """A program of docs/examples, until SIGTERM; where it writes what it says.

        It ends in order, and nothing goes wrong.
        """
        log = self.folder / f"{words[-1]}.log"
        with open(log, "wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-u", *words],
                stdout=file,
                stderr=file,
                env=self.variables(),
                cwd=ROOT / "docs" / "examples",
            )
        try:
            yield log
        finally:
            process.terminate()
            code = process.wait(SECONDS)
        # uvicorn ends by the signal itself when it has finished.
        self.assertIn(code, (0, -signal.SIGTERM), log.read_text())
        self.assertNotIn("Traceback", log.read_text())

    def ask(
        self, path: str, body: bytes | None = None, kind: str = "text/plain"
    ) -> str:
        """What a web application answers, once it does so without an error."""
        url = f"http://127.0.0.1:{self.http_port}{path}"
        request = urllib.request.Request(url, body, {"Content-Type": kind})
        end = time.monotonic() + SECONDS
        while True:
            try:
                with urllib.request.urlopen(request) as answer:
                    text: bytes = answer.read()
                    return text.decode()
            except urllib.error.URLError as problem:
                self.assertLess(time.monotonic(), end, problem)
                time.sleep(0.02)

    @needs("fastapi")
    @needs("uvicorn")
    def test_fastapi(self) -> None:
        """A request sends, the listener in the server works, and SIGTERM ends both."""
        port = str(self.http_port)
        with self.service("-m", "uvicorn", "--port", port, "fastapi_orders:app"):
            order = b'{"number": "17", "goods": "table"}'
            self.assertIn('"message":', self.ask("/orders", order, "application/json"))
            self.assertEqual(self.ask("/orders/17/bill"), '"one table"')

    @needs("django")
    def test_django(self) -> None:
        """A view sends when the transaction is committed; a command does the work."""
        manage = "django_shop/manage.py"
        port = str(self.http_port)
        with (
            self.service(manage, "runserver", "--noreload", port),
            self.service(manage, "bill_orders") as log,
        ):
            self.assertEqual(self.ask("/orders/17", b"table"), '{"number": "17"}')
            end = time.monotonic() + SECONDS
            while "order 17: one table\n" not in log.read_text():
                self.assertLess(time.monotonic(), end, log.read_text())
                time.sleep(0.02)

    def run_program(self, text: str) -> None:
        """Run a program of a page; one that prints no end is stopped by SIGTERM.

        It prints what its comments say, in their order.
        """
        program = self.folder / "program.py"
        program.write_text(text.replace("127.0.0.1:9876", self.names))
        wanted = PRINTED.findall(text)
        is_service = "mq.run()" in text and "mq.stop()" not in text
        process = subprocess.Popen(
            [sys.executable, "-u", str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.variables(),
            cwd=self.folder,
        )
        limit = threading.Timer(SECONDS, process.kill)
        limit.start()
        assert process.stdout is not None
        with process, process.stdout as output:
            lines: list[str] = []
            for line in output:
                lines.append(line.rstrip("\n"))
                if is_service and lines[-1] == wanted[-1]:
                    process.terminate()
        limit.cancel()
        self.assertEqual(process.returncode, 0, (text, lines))
        self.assertEqual([line for line in lines if line in wanted], wanted, text)

    @needs("opentelemetry")
    def test_pagesOfTheClient(self) -> None:
        """Each program of C{docs/clients.rst} prints what stands behind its prints; so
        do those of the page for who comes from an older release."""
        for text in [*programs("clients.rst"), *programs("upgrading.rst")]:
            self.run_program(text)

    def health_check(self, port: int) -> subprocess.Popen[str]:
        """The health check of containers, at work."""
        return subprocess.Popen(
            [sys.executable, "-I", str(ROOT / "etc/container/healthy.py"), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def test_containerIsHealthyWhenClientsCanUseIt(self) -> None:
        """The health check succeeds; not if the answer is another, or there is none."""
        check = self.health_check(self.metrics_port)
        self.assertEqual((check.communicate()[0], check.returncode), ("ok\n", 0))
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            check = self.health_check(port)
            connection = server.accept()[0]
            with connection:
                self.assertIn(b"GET /healthz/ready HTTP/1.1\r\n", connection.recv(4096))
                connection.sendall(b"HTTP/1.0 503 No\r\n\r\nnot registered\n")
            said = check.communicate()[0]
            self.assertEqual((said, check.returncode), ("503: not registered\n", 1))
        check = self.health_check(port)
        said = check.communicate()[0]
        self.assertIn(f"The port {port} of metrics does not answer: ", said)
        self.assertEqual(check.returncode, 1)
