"""A broker for users' tests: C{rocketbroker.testing}, and the fixture of pytest."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from functools import cache
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import ConfigurationError, MessageIllegal, TopicNotExist
from rocketbroker.testing import Broker
from rocketbroker.testing.brokers.process import shared
from rocketbroker.testing.control import faults
from rocketbroker.threads import connect
from scripts.lab.servers import environment
from scripts.walk_pages import ROOT, steps

PAGE = "docs/testing.rst"

#: How long something may take; nothing is asserted about it.
SECONDS = 60.0

#: What the page does not show.
FAILING = """
import pytest
from rocketbroker.testing import Broker

def test_fails(rocketmq):
    rocketmq.send(rocketmq.topic("Orders"), "this was sent")
    assert rocketmq is None

def test_with_a_block_fails():
    with Broker() as broker:
        broker.send(broker.topic("Orders"), "that was sent")
        raise ValueError("this is wrong")

@pytest.fixture
def closed():
    return Broker()

def test_without_a_block_fails(closed):
    assert closed is None
"""
WORKER = """
def test_worker(rocketmq, worker_id):
    with open("workers", "a") as workers:
        print(worker_id, rocketmq.name_server, file=workers)
"""


def pytest(folder: Path, *words: str) -> str:
    """What pytest says of all tests in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout


@cache
def ran() -> str:
    """What pytest says of the page's examples and of those that fail."""
    with tempfile.TemporaryDirectory(prefix="rocketbroker-") as folder:
        for step in steps(PAGE, (ROOT / PAGE).read_text("utf-8")):
            if step.kind == "python":
                module = step.text.splitlines()[0].removeprefix("# ")
                with open(Path(folder, module), "a", encoding="utf-8") as file:
                    file.write(step.text)
        Path(folder, "test_failing.py").write_text(FAILING)
        return pytest(Path(folder))


class PytestTests(SynchronousTestCase):
    """The fixture, as a user has it who has installed rocketbroker."""

    def test_examplesOfThePagePass(self) -> None:
        """All of them, and nothing else fails but what is to fail."""
        self.assertIn(" 3 failed, 10 passed in ", ran())

    def test_failedTestShowsLogAndTopics(self) -> None:
        """As a section of its report."""
        section = ran().partition("- broker rocketmq -")[2].partition("\n____")[0]
        self.assertIn("] 127.0.0.1:", section)
        self.assertIn(" created topic 'Orders-", section)
        self.assertIn("  queue 0 offset 0: 'this was sent'", section)
        self.assertNotIn("that was sent", section)

    def test_errorThatLeavesTheBlockHasANote(self) -> None:
        """For those who do not use the fixture."""
        note = ran().partition("ValueError: this is wrong\n")[2]
        self.assertIn("  queue 0 offset 0: 'that was sent'\n", note)

    def test_workersOfXdistHaveBrokersOfTheirOwn(self) -> None:
        """Each starts one."""
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "test_worker.py").write_text(WORKER)
        said = pytest(folder, "-n", "2", "--dist", "each")
        self.assertIn(" 2 passed in ", said)
        lines = (folder / "workers").read_text().splitlines()
        workers, name_servers = zip(*map(str.split, lines), strict=True)
        self.assertEqual(sorted(workers), ["gw0", "gw1"])
        self.assertEqual(len(set(name_servers)), 2)

    def test_pluginImportsNothingBeforeItIsWanted(self) -> None:
        """It is imported by each run of pytest on the machine."""
        code = (
            "import sys, rocketbroker.testing.brokers.pytest_plugin; "
            "print(*[name for name in sys.modules if name.startswith('rocketbroker.')"
            " or name.startswith('twisted')])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(
            done.stdout.split(),
            [
                "rocketbroker.testing",
                "rocketbroker.testing.brokers",
                "rocketbroker.testing.brokers.pytest_plugin",
            ],
        )


class BrokerTests(SynchronousTestCase):
    """L{Broker}, in this process."""

    def test_nameIsOfOneTest(self) -> None:
        """The same again in one test, and another in the next."""
        with Broker() as broker:
            topic, group = broker.topic("T"), broker.group("g")
            broker.send(topic, "x")
            self.assertEqual(broker.topic("T"), topic)
            self.assertEqual(broker.group("g"), group)
        with Broker() as broker:
            self.assertNotEqual(broker.topic("T"), topic)
            self.assertNotEqual(broker.group("g"), group)
            self.assertEqual(broker.messages(broker.topic("T")), [])

    def test_topicGoesWithItsTest(self) -> None:
        """Other tests of the process have the same broker."""
        with Broker() as broker:
            topic, name_server = broker.topic("T"), broker.name_server
        with Broker() as broker:
            self.assertEqual(broker.name_server, name_server)
            self.assertRaises(TopicNotExist, broker.messages, topic)

    def test_messagesOfAllQueuesComeInOrder(self) -> None:
        """In that in which they were stored."""
        with Broker() as broker:
            topic = broker.topic("T", queues=3)
            for number in range(40):
                broker.send(topic, f"{number}", properties={"n": f"{number}"})
            found = broker.messages(topic)
        self.assertEqual([message.text for message in found], [*map(str, range(40))])
        self.assertEqual(found[7].properties["n"], "7")
        self.assertEqual({message.queue.queue_id for message in found}, {0, 1, 2})

    def test_messageForLaterComesThen(self) -> None:
        """It is in its topic when its time is over."""
        with Broker() as broker:
            topic = broker.topic("T")
            broker.send(topic, "far", delay=timedelta(hours=1))
            broker.send(topic, "near", at=time.time() + 0.5)
            self.assertEqual(broker.messages(topic), [])
            end = time.monotonic() + SECONDS
            while not (found := broker.messages(topic)) and time.monotonic() < end:
                time.sleep(0.01)
        self.assertEqual([message.text for message in found], ["near"])

    def test_timeIsMoved(self) -> None:
        """Forward, for this broker; what is due is delivered."""
        with Broker() as broker:
            later = broker.topic("Later")
            broker.send(later, "in three days", delay=timedelta(days=3))
            before = broker.advance(0)
            broker.advance("71h")
            self.assertEqual(broker.messages(later), [])
            after = broker.advance("1h", keep_clients=True)
            self.assertEqual(after.ahead_ms - before.ahead_ms, 72 * 3_600_000)
            end = time.monotonic() + SECONDS
            while not broker.messages(later):
                self.assertLess(time.monotonic(), end)

    def test_faultsEndWithTheirTest(self) -> None:
        """They are those of one test, and are told with their hits."""
        with Broker() as broker, Broker() as other:
            topic = broker.topic("T")
            number = broker.fault("code", topic, request="send", code=13, times=1)
            other.fault("drop", other.topic("T"))
            self.assertRaises(MessageIllegal, broker.send, topic, "refused")
            broker.send(topic, "stored")
            (fault,) = broker.faults()
            self.assertEqual((fault.number, fault.hits), (number, 1))
            self.assertEqual(broker.faults(number), [fault])
        process = shared({})
        with Client(Settings(process.name_server)) as client:
            self.assertEqual(faults(client, process.address), [])

    def test_groupThatDoesNotConsumeIsAnError(self) -> None:
        """Which says how far it is."""
        with Broker() as broker:
            topic, group = broker.topic("T"), broker.group("g")
            broker.send(topic, "x")
            wait = broker.wait_consumed
            problem = self.assertRaises(AssertionError, wait, topic, group, 1, 0.0)
        self.assertEqual(
            str(problem),
            f"{group} has consumed 0 of 1 messages of {topic} after 0 seconds, "
            "and 1 are left",
        )

    def test_resetRemovesWhatHasFixedNames(self) -> None:
        """Messages, and how far groups are, which would pass over the next ones."""
        with Broker() as broker:
            broker.reset()
            broker.send("Fixed", "one")
            with (
                connect(broker.name_server) as mq,
                mq.consumer("Fixed", "billing", start="earliest") as messages,
            ):
                message = messages.next(SECONDS)
                assert message is not None
                message.ack()
                broker.wait_consumed("Fixed", "billing", 1)
            broker.reset()
            self.assertRaises(TopicNotExist, broker.messages, "Fixed")
            broker.send("Fixed", "two")
            self.assertEqual(broker.lag("Fixed", "billing"), 1)
            broker.reset()

    def test_brokerThatHasEndedIsReplaced(self) -> None:
        """The tests after the one that killed it have another one."""
        with Broker() as broker:
            topic = broker.topic("T")
            process = shared({}).process
            process.kill()
            process.wait()
            self.assertIn(f"topic {topic} cannot be read: ", broker.report())
        with Broker() as broker:
            self.assertEqual(broker.messages(broker.topic("T")), [])

    def test_settingThatCannotBeIsSaid(self) -> None:
        """In the broker's words."""
        broker = Broker({"messageDelayLevel": "soon"})
        problem = self.assertRaises(ConfigurationError, broker.__enter__)
        self.assertIn("messageDelayLevel cannot be 'soon'", str(problem))

    def test_brokerOutsideItsBlockIsAnError(self) -> None:
        """Which says where it can be used."""
        problem = self.assertRaises(RuntimeError, Broker().topic, "T")
        self.assertIn("with Broker() as broker", str(problem))
