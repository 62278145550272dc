"""Access control at real ports, with our clients."""

from __future__ import annotations

import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker import threads
from rocketbroker.auth.signatures import Credentials
from rocketbroker.blocking import Client, Message, Producer, Settings
from rocketbroker.errors import RocketbrokerError
from scripts.lab.servers import Cluster

ACCOUNTS = """
accounts:
- accessKey: administrator
  secretKey: admin-secret
  admin: true
- accessKey: application
  secretKey: app-secret
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms: [Orders=PUB|SUB, Reports=SUB]
  groupPerms: [billing=SUB]
"""


def application(
    cluster: Cluster, secret: str = "app-secret", patience: float = 120
) -> threads.Session:
    """A session of the application."""
    return threads.connect(
        cluster.names,
        patience=patience,
        access_key="application",
        secret_key=secret,
    )


class PlainTests(SynchronousTestCase):
    """ACL 1.0."""

    def cluster(self, **settings: object) -> Cluster:
        home = Path(self.mktemp()).absolute()
        (home / "conf").mkdir(parents=True)
        self.accounts = home / "conf" / "plain_acl.yml"
        self.accounts.write_text(ACCOUNTS)
        cluster = Cluster(aclEnable="true", rocketmqHome=home, **settings)
        self.addCleanup(cluster.stop)
        return cluster.start()

    def administrator(self, cluster: Cluster) -> Client:
        credentials = Credentials("administrator", "admin-secret")
        client = Client(Settings(cluster.names, credentials=credentials))
        self.addCleanup(client.close)
        return client

    def test_clients(self) -> None:
        """An application does what its rules say, with workers and without; nobody
        else does anything; and what becomes of the file counts without a start."""
        for workers in ("0", "2"):
            with self.subTest(workers=workers):
                cluster = self.cluster(workers=workers)
                producer = Producer(self.administrator(cluster))
                for topic in ("Orders", "Reports", "Secrets"):
                    producer.send(Message(topic, b"first"))
                self.use(cluster)
                self.refuse(cluster)
                self.accounts.write_text(ACCOUNTS.replace("app-secret", "new-secret"))
                self.wait_for_change(cluster)

    def use(self, cluster: Cluster) -> None:
        """What is allowed."""
        with application(cluster) as session:
            for number in range(20):
                session.send("Orders", b"%d" % number)
            for topic, count in (("Orders", 21), ("Reports", 1)):
                with session.consumer(
                    topic, group="billing", start="earliest"
                ) as messages:
                    for _ in range(count):
                        next(messages).ack()

    def refuse(self, cluster: Cluster) -> None:
        """What is not."""
        with application(cluster, patience=1) as session:
            for topic in ("Reports", "Secrets"):
                with self.assertRaisesRegex(RocketbrokerError, "No default permission"):
                    session.send(topic, "x")
        for session, words in (
            (threads.connect(cluster.names, patience=1), "No accessKey is configured"),
            (application(cluster, "guess", 1), "Check signature failed"),
        ):
            with session, self.assertRaisesRegex(RocketbrokerError, words):
                session.send("Orders", "x")

    def wait_for_change(self, cluster: Cluster) -> None:
        """The old secret does not count any more, and the new one does."""
        with application(cluster, patience=1) as session:
            while True:
                try:
                    session.send("Orders", "x")
                except RocketbrokerError:
                    break
                time.sleep(0.2)
        with application(cluster, "new-secret") as session:
            session.send("Orders", "x")
