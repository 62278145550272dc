"""Topics as Arrow record batches, from a running broker."""

from __future__ import annotations

import subprocess
import sys

import duckdb
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow import read
from rocketbroker.records.batches import encode_part
from rocketbroker.sources.retry import NoAnswer
from rocketbroker.threads import connect
from scripts.lab.servers import Cluster, environment
from tests.integration.asker import BATCHES, Asker

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
        with connect(self.cluster.names, seconds=30) as mq:
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

    def test_batchQueues(self) -> None:
        """Messages of a topic with batch queues come one by one, live and from files:
        those of batches, and those that are alone."""
        ask = Asker(self.cluster)
        self.addCleanup(ask.close)
        ask.create("batches", "+queue.type=BatchCQ")
        ask.send("batches", "UNIQ_KEY\1alone\2", b"0")
        for start in range(1, 400, 7):
            parts = [
                encode_part(0, b"%d" % n, b"TAGS\1t%d\2" % (n % 3))
                for n in range(start, start + 7)
            ]
            ask.send("batches", f"UNIQ_KEY\1{start}\2", b"".join(parts), BATCHES)
        wanted = [b"%d" % number for number in range(400)]
        for words in (
            {"name_server": self.cluster.names},
            {"name_server": self.cluster.names, "pull_batch_size": 3},
            {"store": self.cluster.store},
        ):
            table = read("batches", **words).read_all()
            self.assertEqual(table.column("body").to_pylist(), wanted)
            self.assertEqual(table.column("queueOffset").to_pylist(), [*range(400)])
            part = read("batches", tags="t1", columns=["body"], **words).read_all()
            self.assertEqual(part.column("body").to_pylist(), wanted[1::3])
        flags = {flag & 0xC0 for flag in table.column("sysFlag").to_pylist()}
        self.assertEqual(flags, {0, 0xC0})

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
