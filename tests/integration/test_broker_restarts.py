"""Reads of ranges go on when a broker that restarts is back."""

from __future__ import annotations

import signal
from threading import Thread

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.reading import RangeReader
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.sources.network import NetworkOrigin
from rocketbroker.sources.options import ReadOptions, parse_options
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.resolving import resolve
from rocketbroker.sources.retry import NoAnswer
from scripts.lab.servers import Cluster

WHOLE = Range(Queue("T", "broker-a", 0), 0, 2000)


class RestartTests(SynchronousTestCase):
    """Our broker, killed and stopped."""

    timeout = 300

    def setUp(self) -> None:
        """A topic of one queue."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        with Client(Settings(self.cluster.names, seconds=30)) as client:
            client.create_topic("T", queues=1)
            sent = (Message("T", b"%d" % number) for number in range(WHOLE.until))
            for result in Producer(client).send_all(sent):
                self.assertEqual(result.status, 0)
        self.given = {"nameServer": self.cluster.names, "subscribe": "T"}
        self.starting: Thread | None = None
        self.addCleanup(self.wait_until_started)

    def origin(self, options: ReadOptions) -> NetworkOrigin:
        """An origin that does not know the brokers yet."""
        origin = NetworkOrigin(options)
        self.addCleanup(origin.close)
        return origin

    def restart(self, how: int) -> None:
        """Stop the broker; it is back later, while this goes on."""
        self.wait_until_started()
        self.cluster.broker.stop(how)
        self.starting = Thread(target=self.cluster.broker.start)
        self.starting.start()

    def wait_until_started(self) -> None:
        """Wait for the thread that starts the broker: it reads before that is ready."""
        if self.starting is not None:
            self.starting.join()

    def test_restart(self) -> None:
        """Each message comes once; planning waits, too."""
        words = {"pullBatchSize": "50", "pullConcurrency": "2"}
        options = parse_options({**self.given, **words})
        origin = self.origin(options)
        self.assertEqual(resolve(origin, options, 0), [WHOLE])
        pieces = origin.pieces(WHOLE, options.filter)
        position = 0
        for number, piece in enumerate(pieces):
            self.assertEqual((piece.start, piece.lost), (position, ""))
            position = piece.until
            if number == 3:
                self.restart(signal.SIGKILL)
        self.assertEqual(position, WHOLE.until)
        # A broker that is stopped takes its topics from the name server.
        self.restart(signal.SIGTERM)
        self.assertEqual(resolve(self.origin(options), options, 0), [WHOLE])
        reader = RangeReader(origin, WHOLE, options)
        self.assertEqual(sum(each.size for each in reader.layouts()), WHOLE.until)

    def test_staysAway(self) -> None:
        """One sentence says why it does not go on."""
        options = parse_options({**self.given, "retryTimeout": "1s"})
        origin = self.origin(options)
        self.cluster.broker.stop(signal.SIGKILL)
        error = self.assertRaises(NoAnswer, origin.bounds, WHOLE.queue)
        self.assertIn("(tried again for 1 s, option retryTimeout)", str(error))
        self.assertEqual(len(str(error).splitlines()), 1)
