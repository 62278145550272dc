"""C{rocketbroker doctor} on masters and slaves."""

from __future__ import annotations

from collections.abc import Iterable

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.cluster.cluster import Broker
from rocketbroker.cli.cluster.doctor.finding import Finding
from rocketbroker.cli.cluster.doctor.replica_checks import (
    of_groups,
    of_master,
    of_silent,
    of_slave,
)
from rocketbroker.wire.bodies.replicas import (
    HAClientRuntimeInfo,
    HAConnectionRuntimeInfo,
    HARuntimeInfo,
)

NOW = 1_700_000_000_000


def statuses(found: Iterable[Finding]) -> list[tuple[str, str]]:
    """Each finding's status and words."""
    return [(each.status, each.words) for each in found]


class SilentTests(SynchronousTestCase):
    """A broker that does not say how replication is."""

    def test_secretIsTold(self) -> None:
        """Who has a secret says it elsewhere; one of before 5.0 does not know."""
        self.assertEqual(statuses(of_silent("m", {})), [])
        ((status, words),) = statuses(of_silent("m", {"haSecretFile": "/s"}))
        self.assertEqual(status, "warning")
        self.assertIn("at its admin port only", words)


class MasterTests(SynchronousTestCase):
    """A master beside its settings."""

    def found(self, in_sync: int, behind: int, **values: str) -> list[tuple[str, str]]:
        """What is found of a master with so many slaves in sync, and others behind."""
        info = HARuntimeInfo(
            master=True,
            in_sync_slave_nums=in_sync,
            ha_connection_info=[
                HAConnectionRuntimeInfo(addr=f"s:{n}", diff=n << 20, in_sync=not n)
                for n in (*[0] * in_sync, *range(1, behind + 1))
            ],
        )
        return statuses(of_master("m", info, values))

    def test_async(self) -> None:
        """Who waits for nobody may be without slaves; one far behind is told."""
        self.assertEqual(self.found(0, 0, brokerRole="ASYNC_MASTER"), [])
        self.assertEqual(
            self.found(1, 1, brokerRole="ASYNC_MASTER"),
            [("warning", "its slave s:1 is 1.0 MiB behind")],
        )

    def test_sync(self) -> None:
        """As many copies as the settings ask for, or it is a problem."""
        role = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"}
        self.assertEqual(self.found(1, 0, **role), [("ok", "slaves in sync: 1")])
        ((status, words),) = self.found(0, 0, **role)
        self.assertEqual(status, "problem")
        self.assertIn("for 2 copies (inSyncReplicas), and slaves in sync: 0", words)

    def test_newMasterWithoutSlavesIsNoProblem(self) -> None:
        """It was started just now, or its slave was."""
        info = HARuntimeInfo(master=True)
        role = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"}
        ((status, words),) = statuses(of_master("m", info, role, is_new=True))
        self.assertEqual(status, "warning")
        self.assertIn("was started just now, and its sends wait for 2 copies", words)

    def test_one(self) -> None:
        """RocketMQ's default asks for no copy, whatever the role's name says."""
        ((status, words),) = self.found(1, 0, brokerRole="SYNC_MASTER")
        self.assertEqual(status, "warning")
        self.assertIn("waits for no slave: set 2", words)


class SlaveTests(SynchronousTestCase):
    """A slave by what it says of its link."""

    def found(self, is_new: bool = False, **link: object) -> tuple[str, str]:
        """What is found of it."""
        body = HAClientRuntimeInfo(**link)  # type: ignore[arg-type]
        info = HARuntimeInfo(ha_client_runtime_info=body)
        (found,) = statuses(of_slave("s", info, NOW, is_new))
        return found

    def test_well(self) -> None:
        """It has heard its master within the time of heartbeats."""
        self.assertEqual(
            self.found(master_addr="m:10912", last_read_timestamp=NOW - 20_000),
            ("ok", "follows m:10912"),
        )

    def test_slaveThatHasJustConnectedFollows(self) -> None:
        """Its link says so, though the master has not had to say anything yet."""
        self.assertEqual(
            self.found(master_addr="m:10912", state="TRANSFER"),
            ("ok", "follows m:10912"),
        )
        self.assertEqual(self.found(master_addr="m:1", state="READY")[0], "problem")

    def test_newSlaveThatDoesNotFollowIsNoProblem(self) -> None:
        """It knows no master yet, or does not hear it yet."""
        for link in ({}, {"master_addr": "m:1"}):
            status, words = self.found(is_new=True, **link)
            self.assertEqual(status, "warning")
            self.assertIn("was started just now, and ", words)

    def test_nobody(self) -> None:
        """It has no master to follow."""
        status, words = self.found()
        self.assertEqual(status, "problem")
        self.assertIn("knows no master to follow", words)

    def test_silent(self) -> None:
        """It knows one that it does not hear, any more or ever."""
        status, words = self.found(master_addr="m:1", last_read_timestamp=NOW - 60_000)
        self.assertEqual(status, "problem")
        self.assertIn("has not heard its master m:1 for 1 m", words)
        self.assertIn("m:1 at all", self.found(master_addr="m:1")[1])

    def test_problem(self) -> None:
        """A rocketbroker says itself what is wrong."""
        self.assertEqual(
            self.found(master_addr="m:1", last_read_timestamp=NOW, problem="It is so."),
            ("problem", "It is so."),
        )


class GroupTests(SynchronousTestCase):
    """Brokers of one name."""

    def found(self, *members: tuple[int, str]) -> list[tuple[str, str]]:
        """What is found of brokers with these ids and sizes of segments."""
        return statuses(
            of_groups(
                {
                    Broker("c", "b", number, f"h:{number}"): {
                        "mappedFileSizeCommitLog": size
                    }
                    for number, size in members
                }
            )
        )

    def test_pair(self) -> None:
        """A master with its slave, and one alone, are well."""
        self.assertEqual(self.found((0, "5"), (1, "5")), [])
        self.assertEqual(self.found((0, "5")), [])

    def test_headless(self) -> None:
        """Slaves without a master take no messages."""
        ((status, words),) = self.found((1, "5"), (2, "5"))
        self.assertEqual(status, "problem")
        self.assertIn("has no master: it can be read", words)

    def test_sizes(self) -> None:
        """Segments of another size cannot be copied."""
        ((status, words),) = self.found((0, "5"), (1, "6"))
        self.assertEqual(status, "problem")
        self.assertIn("mappedFileSizeCommitLog", words)
