"""Topics as Arrow record batches, from a running broker."""

from __future__ import annotations

import subprocess
import sys

import duckdb
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow import read
from rocketbroker.blocking import connect
from rocketbroker.ranges.patience import NoAnswer
from tests.integration.servers import Cluster, environment

TOPIC = "queried"
COUNT = 500


class ArrowTests(SynchronousTestCase):
    """L{read} from our servers."""

    timeout = 300

    def setUp(self) -> None:
        """Start the servers and fill a topic."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        with connect(self.cluster.names) as mq:
            for number in range(COUNT):
                mq.send(TOPIC, b"%d" % number, keys=[f"k{number}"])

    def test_live(self) -> None:
        """DuckDB, in its own threads, gets what was sent; from files, too."""
        connection = duckdb.connect()
        self.addCleanup(connection.close)
        for words in (
            {"name_server": self.cluster.names},
            {"store": self.cluster.store},
        ):
            connection.register("messages", read(TOPIC, **words))
            found = connection.sql(
                "select keys[1], body from messages order by cast(body as text)::int"
            ).fetchall()
            self.assertEqual(found, [(f"k{n}", b"%d" % n) for n in range(COUNT)])

    def test_gone(self) -> None:
        """What goes wrong on the way is our error, in one sentence."""
        reader = read(TOPIC, name_server=self.cluster.names, retry_timeout="0s")
        self.cluster.stop()
        self.assertRaises(NoAnswer, reader.read_all)

    def test_light(self) -> None:
        """Importing the package imports neither pyarrow nor numpy."""
        code = (
            "import sys, rocketbroker.arrow\n"
            "assert not {'pyarrow', 'numpy'} & set(sys.modules)\n"
        )
        subprocess.run([sys.executable, "-c", code], env=environment(), check=True)
