"""Tests of what a port shows."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.remoting import RemotingServerOptions
from rocketbroker.metrics.remoting_families import (
    add_longest_turns,
    add_port,
    request_name,
    response_name,
)
from rocketbroker.metrics.samples import Samples
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.remoting.counts import Counts, Longest
from rocketbroker.remoting.periodic import PeriodicCall
from rocketbroker.remoting.table import NOT_SERVED, ResponderTable
from rocketbroker.remoting.turns import TURN_END, Turns
from tests.metrics.scraped import parsed


class PortTests(SynchronousTestCase):
    """Every counter of a port is shown."""

    def setUp(self) -> None:
        """A port without connections."""
        limits = ConnectionLimits.of_server(RemotingServerOptions())
        self.group = ConnectionGroup(Clock(), ResponderTable(), limits, Turns())

    def values(self, latencies: bool = True) -> dict[str, float]:
        """Name to value of all samples of port `vip`."""
        samples = Samples({})
        add_port(samples, "vip", self.group, latencies)
        found = [s for family in parsed(samples) for s in family.samples]
        self.assertEqual({s.labels["port"] for s in found}, {"vip"})
        return {s.name: s.value for s in found}

    def test_everyCounter(self) -> None:
        """Each counter of a port has a name of its own and shows its value."""
        for number, name in enumerate(Counts.__slots__, 1):
            setattr(self.group.counts, name, number)
        values = self.values()
        self.assertEqual(values.pop("rocketbroker_connections"), 0)
        self.assertEqual(
            sorted(values.values()), list(range(1, len(Counts.__slots__) + 1))
        )

    def test_limit(self) -> None:
        """The limit of connections is there where there is one."""
        name = "rocketbroker_connections_limit"
        self.assertNotIn(name, self.values())
        self.group.max_connections = 768
        self.assertEqual(self.values()[name], 768)

    def test_latencies(self) -> None:
        """They can be left out."""
        self.group.table.answered(34, 0, 0.001)
        self.assertIn("rocketmq_rpc_latency_milliseconds_sum", self.values())
        self.assertNotIn("rocketmq_rpc_latency_milliseconds_sum", self.values(False))

    def test_longestTurns(self) -> None:
        """The longest turns, passes of slices and periodic calls, each by its name."""
        clock = Clock()
        slices = Slices(clock)
        call = PeriodicCall(clock, "scan of clients", lambda: None)
        self.group.turns.took(310, 0.5, 1.0)
        self.group.turns.took(TURN_END, 0.25, 1.0)
        slices.longest["steps"] = Longest()
        slices.longest["steps"].note(0.125, 1.0)
        call.longest.note(0.75, 1.0)
        samples = Samples({})
        add_longest_turns(samples, {"main": self.group}, slices, [call])
        (family,) = parsed(samples)
        self.assertEqual(
            {sample.labels["work"]: sample.value for sample in family.samples},
            {
                "send_message_v2": 0.5,
                "turn_end": 0.25,
                "slices_of_steps": 0.125,
                "scan_of_clients": 0.75,
            },
        )

    def test_names(self) -> None:
        """Known codes by name, others by number, those that nobody serves together."""
        self.assertEqual(request_name(310), "send_message_v2")
        self.assertEqual(request_name(-7), "-7")
        self.assertEqual(request_name(NOT_SERVED), "not_served")
        self.assertEqual(response_name(0), "success")
        self.assertEqual(response_name(9999), "9999")
