"""Spark, Arrow and exports at a cluster that speaks only TLS and controls access."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.certificates import self_signed
from rocketbroker.arrow import read
from rocketbroker.auth.signatures import Credentials
from rocketbroker.blocking import Client, Settings
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import RocketbrokerError
from scripts.lab.servers import environment
from tests.integration.exports import COMMAND
from tests.integration.secured import SecuredCluster
from tests.integration.spark_process import SparkProcess
from tests.missing import needs


def run_in(variables: Mapping[str, str], line: str) -> None:
    """Run the command; it has to succeed, and shows no secret."""
    done = subprocess.run(
        [*COMMAND, *line.split()],
        capture_output=True,
        text=True,
        env={**environment(), **variables},
        check=False,
    )
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert "hidden" not in done.stdout + done.stderr, line


@needs("cryptography")
class SecuredExportTests(SynchronousTestCase):
    """A topic of an application."""

    timeout = 600

    def setUp(self) -> None:
        """The cluster with its topic, and an application's context."""
        self.secured = SecuredCluster(Path(self.mktemp()))
        self.addCleanup(self.secured.cluster.stop)
        self.secured.cluster.start()
        self.folder = self.secured.folder
        settings = Settings(
            self.secured.names,
            tls=ClientTls(ca_path=str(self.secured.ca)),
            credentials=Credentials("administrator", "hidden-admin-secret"),
        )
        with Client(settings) as client:
            client.create_topic("Orders", queues=4)
        other, _ = self_signed(["other"])
        (self.folder / "other.crt").write_bytes(other)
        self.words = (
            self.secured.names,
            str(self.secured.ca),
            str(self.folder),
            str(self.folder / "spark.log"),
        )

    def test_access(self) -> None:
        """Whoever has TLS and an account writes, reads, streams and exports; no
        secret is shown or kept."""
        done = SparkProcess.run("secured", *self.words)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("hidden", done.stdout)
        told = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(told["read"], 20)
        self.assertIn("Check signature failed", told["wrong secret"])
        self.assertIn("is not trusted", told["not trusted"])
        self.assertIn("go with tls=true", told["no TLS"])
        self.read_by_arrow()
        self.export()
        for path in self.folder.rglob("*"):
            kept = ("plain_acl.yml", "contexts.json")
            if path.is_file() and path.name not in kept:
                self.assertNotIn(b"hidden-app", path.read_bytes(), path)

    def read_by_arrow(self) -> None:
        """With the access, and without."""
        access = {"tls": True, "tls_ca": self.secured.ca}
        keys = {"access_key": "application", "secret_key": "hidden-app-secret"}
        names = self.secured.names
        rows = read("Orders", name_server=names, **access, **keys).read_all()
        self.assertEqual(rows.num_rows, 20)
        with self.assertRaises(RocketbrokerError) as caught:
            read("Orders", name_server=names, **access, retry_timeout="1s")
        self.assertIn("No accessKey is configured", str(caught.exception))

    def export(self) -> None:
        """By a context, and by variables."""
        root = str(self.folder / "lake")
        secret = self.folder / "secret"
        secret.write_text("hidden-app-secret")
        home = {"XDG_CONFIG_HOME": str(self.folder)}
        words = f"context set live {self.secured.names} --tls-ca {self.secured.ca}"
        keys = f"--access-key application --secret-key-file {secret}"
        run_in({**home}, f"{words} {keys}")
        secret.unlink()
        run_in(home, f"export run Orders --to {root} --context live")
        run_in(home, f"export verify {root} --context live")
        run_in(home, f"export report {root} --context live")
        variables = self.secured.variables("application", "hidden-app-secret")
        run_in(variables, f"export lag {root} --namesrv {self.secured.names}")
