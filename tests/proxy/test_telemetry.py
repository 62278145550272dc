"""Settings of clients, and checks of transactions."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy.messages_pb2 import ClientType, Code, MessageType, Settings
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.proxy.transactions import Half
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from tests.proxy.proxied import Proxied


class SettingsTests(SynchronousTestCase):
    """What a client says, and what it is told."""

    def test_settingsAreAnsweredOnTheStream(self) -> None:
        """By what the client has to go by."""
        proxied = Proxied()
        proxied.consume()
        (command,) = proxied.commands
        self.assertEqual(command.status.code, Code.OK)
        self.assertEqual(command.settings.subscription.receive_batch_size, 32)
        self.assertEqual(command.settings.subscription.group.name, "G")

    def test_settingsThatSayNothingAreRefused(self) -> None:
        """So are consumers of a kind that is not served, and wrong names."""
        proxied = Proxied()
        came = proxied.telemetry.settings_came
        for given, code in (
            (Settings(), Code.BAD_REQUEST),
            (
                Settings(client_type=ClientType.PULL_CONSUMER, subscription={}),
                Code.ILLEGAL_CONSUMER_GROUP,
            ),
        ):
            call = came("C", given, proxied.commands.append)
            problem = self.assertRaises(Refusal, proxied.finish, call)
            self.assertEqual(problem.code, code)
        self.assertEqual(len(proxied.clients), 0)

    def test_streamThatEndsIsNoStreamAnyMore(self) -> None:
        """But another one of the same client is."""
        proxied = Proxied()
        proxied.produce("T")
        client = proxied.clients.get("C")
        assert client is not None and client.stream is not None
        proxied.telemetry.stream_ended("C", print)
        self.assertIsNotNone(client.stream)
        proxied.telemetry.stream_ended("C", client.stream)
        self.assertIsNone(client.stream)
        proxied.telemetry.stream_ended("D", print)


class CheckTests(SynchronousTestCase):
    """What brokers ask producers."""

    def setUp(self) -> None:
        """A producer of a topic with transactions."""
        self.proxied = Proxied()
        self.proxied.cluster.kinds["T"] = "MIXED"
        self.proxied.produce("T")
        self.proxied.runtime.settle()

    def check(self) -> None:
        """Let the broker ask about a half message."""
        broker = self.proxied.broker
        kept = {"UNIQ_KEY": "01ID", "PGROUP": "T", "TRAN_MSG": "true"}
        broker.put("T", 0, b"half", kept)
        half = broker.queues["T", 0][-1]
        fields = {
            "tranStateTableOffset": "5",
            "commitLogOffset": "77",
            "transactionId": "tx",
            "bname": "b1",
        }
        code = RequestCode.CHECK_TRANSACTION_STATE
        (link,) = self.proxied.runtime.links_to("b1:10911")
        link.send(Command(code, fields, half, flag=ONEWAY))
        self.proxied.runtime.settle()

    def test_proxyIsAProducerOfTheTopic(self) -> None:
        """Also of one that takes all types, which RocketMQ's Proxy forgets."""
        self.assertIn("T", self.groups())

    def groups(self) -> list[str]:
        """The groups of producers of the newest heartbeat."""
        data = self.proxied.broker.heartbeats[-1]
        return [one.group_name for one in data.producer_data_set]

    def test_proxyWithoutProducersIsNoneEither(self) -> None:
        """Brokers ask another proxy; a producer that comes back makes it one again."""
        proxied = self.proxied
        proxied.finish(proxied.telemetry.leave())
        self.assertNotIn(RequestCode.UNREGISTER_CLIENT, proxied.runtime.codes())
        proxied.clients.forget("C")
        proxied.finish(proxied.telemetry.leave())
        self.assertIn(RequestCode.UNREGISTER_CLIENT, proxied.runtime.codes())
        self.assertFalse(proxied.instance.membership.has_groups)
        proxied.broker.heartbeats.clear()
        proxied.produce("T")
        proxied.runtime.settle()
        self.assertIn("T", self.groups())

    def test_producerIsAskedOverItsStream(self) -> None:
        """By an id that finds the half message."""
        self.check()
        command = self.proxied.commands[-1].recover_orphaned_transaction_command
        half = Half.parse(command.transaction_id)
        self.assertEqual(half, Half("b1", 77, 5, "tx"))
        self.assertEqual(command.message.body, b"half")
        system = command.message.system_properties
        self.assertEqual(system.message_type, MessageType.TRANSACTION)

    def test_nobodyIsAskedWithoutAStream(self) -> None:
        """The broker asks again."""
        self.proxied.clients.forget("C")
        count = len(self.proxied.commands)
        self.check()
        self.assertEqual(len(self.proxied.commands), count)
