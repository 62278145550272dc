"""How far a stream is behind."""

from __future__ import annotations

import json
import socket
import urllib.request
from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import CollectorRegistry, generate_latest
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.ranges import Queue
from rocketbroker.spark.lag import (
    LagCollector,
    LagListener,
    Lags,
    QueueLag,
    serve_lag,
)

ZERO, ONE = Queue("T", "b", 0), Queue("T", "b", 1)


class LagTests(SynchronousTestCase):
    """L{Lags}."""

    def setUp(self) -> None:
        """A stream that has read 4 of 10 messages of a queue, and all of another."""
        self.now = 10_000
        self.lags = Lags(lambda: self.now)
        self.lags.at(ZERO, 4, 7_000)
        self.lags.known({ZERO: 4, ONE: 3}, {ZERO: (0, 10), ONE: (0, 3)}, 5)

    def test_seconds(self) -> None:
        """They count from when the first message was stored that is not read."""
        self.assertEqual(
            self.lags.read(), [QueueLag(ZERO, 6, 3.0), QueueLag(ONE, 0, 0.0)]
        )

    def test_hangs(self) -> None:
        """While a micro-batch runs, they go on counting from where it began."""
        self.lags.at(ZERO, 9, 9_000)
        self.now = 20_000
        self.assertEqual(self.lags.read()[0], QueueLag(ZERO, 6, 13.0))
        self.assertEqual(self.lags.planned()[0], QueueLag(ZERO, 1, 11.0))

    def test_justCame(self) -> None:
        """What came while nothing waited came a moment ago."""
        self.lags.known({ONE: 3}, {ONE: (0, 5)}, 6)
        self.now = 12_000
        self.lags.known({ONE: 3}, {ONE: (0, 8)}, 7)
        self.assertEqual(self.lags.read(), [QueueLag(ONE, 5, 2.0)])

    def test_metrics(self) -> None:
        """Prometheus gets all of it."""
        self.lags.lost(ONE, 2)
        registry = CollectorRegistry()
        registry.register(LagCollector(self.lags))
        text = generate_latest(registry).decode("ascii")
        labels = 'broker="b",queue="0",topic="T"'
        for line in (
            f"rocketbroker_stream_lag_messages{{{labels}}} 6.0",
            f"rocketbroker_stream_lag_seconds{{{labels}}} 3.0",
            'rocketbroker_stream_lost_messages_total{broker="b",queue="1",topic="T"}',
            "rocketbroker_stream_end_requests_total 5.0",
        ):
            self.assertIn(line, text)

    def test_serves(self) -> None:
        """A port answers until it is told to stop."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        stop = serve_lag(self.lags, port)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            self.assertIn(b"rocketbroker_stream_lag_messages", answer.read())
        stop()
        serve_lag(self.lags, port)()

    def test_portTaken(self) -> None:
        """A port that stays taken is an error in one sentence."""
        slept: list[float] = []
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            error = self.assertRaises(
                ConfigurationError, serve_lag, self.lags, port, slept.append
            )
        self.assertIn(f"metricsPort={port} cannot be used: Address", str(error))
        self.assertEqual(sum(slept), 4.75)

    def test_listener(self) -> None:
        """A listener of Spark is told, whatever other sources the query has."""
        told: list[tuple[str, list[QueueLag]]] = []
        listener = LagListener(lambda name, lags: told.append((name, lags)))
        ours = json.dumps({"v": 1, "t": {}, "lag": self.lags.to_json()})
        for latest in (ours, "null", "7", None, '{"lag": 3}'):
            source = SimpleNamespace(latestOffset=latest)
            progress = SimpleNamespace(sources=[source], name="orders", id="1")
            listener.onQueryProgress(cast(Any, SimpleNamespace(progress=progress)))
        self.assertEqual(
            told, [("orders", [QueueLag(ZERO, 6, 3.0), QueueLag(ONE, 0, 0.0)])]
        )
