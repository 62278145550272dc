"""Plug-ins of the store, found by `twistd` as a user puts them there."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import NoPermission
from scripts.lab.servers import ROOT, Cluster

#: Two plug-ins of one class: each writes, when the store is closed, how many drafts it
#: saw, and how many those behind it have seen by then.
COUNTING = """
from twisted.plugin import IPlugin
from twisted.python.components import proxyForInterface
from zope.interface import implementer
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.plugins import IStorePlugin


class Counting(proxyForInterface(IStore)):
    seen = 0

    def append(self, drafts):
        self.seen += len(drafts)
        super().append(drafts)

    def close(self):
        inner = getattr(self.original, "seen", None)
        with open(self.path, "a") as file:
            file.write(f"{self.name} {self.seen} {inner}\\n")
        super().close()


@implementer(IPlugin, IStorePlugin)
class CountingPlugin:
    def __init__(self, name):
        self.name = name

    def wrap(self, store, settings):
        counting = Counting(store)
        counting.name = self.name
        counting.path = settings["countsFile"]
        return counting


first = CountingPlugin("first")
second = CountingPlugin("second")
"""


#: A hook that refuses a topic, one that notes answers, and an attachment.
AROUND = """
from twisted.plugin import IPlugin
from zope.interface import implementer
from rocketbroker.broker.plugins import IAttachedPlugin, IAttachment
from rocketbroker.errors import NoPermission
from rocketbroker.remoting.request_hooks import IRequestHook, IRequestHookPlugin


def note(path, *words):
    with open(path, "a") as file:
        print(*words, file=file)


@implementer(IPlugin, IRequestHookPlugin, IRequestHook)
class Refusing:
    name = "refusing"
    codes = (10, 310, 320)
    wants_answers = False

    def hook(self, settings):
        return self

    def before(self, connection, asked):
        if "Closed" in (asked.fields.get("b"), asked.fields.get("topic")):
            raise NoPermission("this topic is closed")

    def after(self, connection, asked, answer):
        raise AssertionError


@implementer(IPlugin, IRequestHookPlugin, IRequestHook)
class Noting:
    name = "noting"
    codes = (310,)
    wants_answers = True

    def hook(self, settings):
        self.path = settings["countsFile"]
        return self

    def before(self, connection, asked):
        note(self.path, "before", asked.code)

    def after(self, connection, asked, answer):
        note(self.path, "after", asked.code, answer.ext["queueOffset"])


@implementer(IPlugin, IAttachedPlugin, IAttachment)
class Beside:
    name = "beside"

    def attach(self, broker, settings):
        self.path = settings["countsFile"]
        return self

    def start(self):
        note(self.path, "start")

    def stop(self):
        note(self.path, "stop")


refusing = Refusing()
noting = Noting()
beside = Beside()
"""


class PluginTests(SynchronousTestCase):
    """A broker with plug-ins."""

    def make(self, **settings: object) -> Cluster:
        """A cluster, not started, that finds the example and those above."""
        cluster = Cluster(flushDiskType="SYNC_FLUSH", **settings)
        self.addCleanup(cluster.stop)
        path = cluster.folder / "path"
        shutil.copytree(ROOT / "etc" / "plugins", path)
        (path / "twisted" / "plugins" / "counting.py").write_text(COUNTING)
        (path / "twisted" / "plugins" / "around.py").write_text(AROUND)
        cluster.broker.paths.append(path)
        return cluster

    def send(self, cluster: Cluster, first: int, count: int) -> None:
        """Send messages whose keys are numbers."""
        with Client(Settings(cluster.names)) as client:
            producer = Producer(client, "PG")
            for number in range(first, first + count):
                producer.send(Message("Audited", b"x", tags="t", keys=[str(number)]))

    def lines(self, path: Path, count: int) -> list[dict[str, object]]:
        """The lines of an audit file, once there are so many."""
        end = time.monotonic() + 60
        text = ""
        while time.monotonic() < end:
            text = path.read_text() if path.exists() else ""
            if text.count("\n") >= count:
                break
            time.sleep(0.02)
        return [json.loads(line) for line in text.splitlines()]

    def test_audit(self) -> None:
        """The example has one line for each message, also after kill -9 and with what
        was stored while it was switched off."""
        cluster = self.make(dispatchFollowers="audit").start()
        path = cluster.store / "plugins" / "audit" / "audit.jsonl"
        self.send(cluster, 0, 50)
        self.assertEqual(len(self.lines(path, 50)), 50)
        self.send(cluster, 50, 50)
        cluster.broker.stop(signal.SIGKILL)
        with open(path, "a") as file:
            file.write('{"end": 99')
        settings = cluster.folder / "rocketbroker.conf"
        text = settings.read_text()
        settings.write_text(text.replace("dispatchFollowers", "#"))
        cluster.broker.start()
        self.send(cluster, 100, 50)
        cluster.broker.stop()
        settings.write_text(text)
        cluster.broker.start()
        lines = self.lines(path, 150)
        self.assertEqual(
            [line["keys"] for line in lines], [str(number) for number in range(150)]
        )
        self.assertEqual({line["topic"] for line in lines}, {"Audited"})
        self.assertEqual({line["tag"] for line in lines}, {"t"})
        ends = [int(str(line["end"])) for line in lines]
        self.assertEqual(ends, sorted(set(ends)))
        self.assertEqual(cluster.broker.stop(), -signal.SIGTERM)
        self.assertNotIn("Traceback", cluster.logs())

    def test_storePlugins(self) -> None:
        """Store plug-ins see every step; the first one named is the outermost."""
        cluster = self.make(messageStorePlugIn="first, second")
        counts = cluster.folder / "counts"
        with open(cluster.folder / "rocketbroker.conf", "a") as file:
            file.write(f"countsFile={counts}\n")
        cluster.start()
        self.send(cluster, 0, 10)
        self.assertEqual(cluster.broker.stop(), -signal.SIGTERM)
        self.assertEqual(counts.read_text(), "first 10 10\nsecond 10 None\n")
        self.assertNotIn("Traceback", cluster.logs())

    def test_around(self) -> None:
        """Hooks see the requests that they name, in their order, and refuse some; an
        attachment starts and stops with the broker; with workers, too."""
        for workers in ("0", "2"):
            with self.subTest(workers=workers):
                cluster = self.make(
                    requestHooks="refusing,noting",
                    attachedPlugins="beside",
                    workers=workers,
                )
                counts = cluster.folder / "counts"
                cluster.broker.set(countsFile=counts)
                cluster.start()
                self.send(cluster, 0, 2)
                with (
                    Client(Settings(cluster.names, patience=0)) as client,
                    self.assertRaisesRegex(NoPermission, "this topic is closed"),
                ):
                    Producer(client, "PG").send(Message("Closed", b"x"))
                self.assertEqual(cluster.broker.stop(), -signal.SIGTERM)
                lines = counts.read_text().splitlines()
                self.assertEqual((lines[0], lines[-1]), ("start", "stop"))
                self.assertEqual(lines[1:3], ["before 310", "after 310 0"])
                self.assertEqual(len(lines), 6)
                self.assertNotIn("Traceback", cluster.logs())

    def test_unknown(self) -> None:
        """A plug-in that is not there stops the start; the sentence names those that
        are."""
        cluster = self.make(messageStorePlugIn="third")
        cluster.namesrv.start()
        with self.assertRaises(RuntimeError):
            cluster.broker.start()
        self.assertIn(
            "messageStorePlugIn names the plug-in 'third', which cannot be found; "
            "there are: first, second.",
            cluster.logs(),
        )
        self.assertNotIn("Traceback", cluster.logs())
