"""What gRPC calls ask for."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.wanted_by_calls import full_name, wanted
from rocketbroker.errors import NoPermission
from rocketbroker.proxy import messages_pb2 as pb

TOPIC = pb.Resource(name="T")
GROUP = pb.Resource(name="G")
BLANK = pb.Resource(name=" ")


def texts(message: Any) -> str:
    """What a call asks for, as text."""
    return ", ".join(
        f"{','.join(action.value for action in want.actions)} {want.resource}"
        for want in wanted(message)
    )


class CallTests(SynchronousTestCase):
    """Resources and actions by message."""

    def test_table(self) -> None:
        """All calls of the facts sheet."""
        send = pb.SendMessageRequest(
            messages=[pb.Message(topic=TOPIC), pb.Message(topic=BLANK)]
        )
        receive = pb.ReceiveMessageRequest(
            group=GROUP, message_queue=pb.MessageQueue(topic=TOPIC)
        )
        invisible = pb.ChangeInvisibleDurationRequest(topic=TOPIC, group=GROUP)
        table: dict[str, list[Any]] = {
            "Pub Topic:T": [
                send,
                pb.RecallMessageRequest(topic=TOPIC),
                pb.EndTransactionRequest(topic=TOPIC),
            ],
            "Pub,Sub Topic:T": [pb.QueryRouteRequest(topic=TOPIC)],
            "Sub Group:G, Sub Topic:T": [
                receive,
                pb.AckMessageRequest(topic=TOPIC, group=GROUP),
                pb.ForwardMessageToDeadLetterQueueRequest(topic=TOPIC, group=GROUP),
                pb.QueryAssignmentRequest(topic=TOPIC, group=GROUP),
            ],
            "Sub Group:G": [
                invisible,
                pb.NotifyClientTerminationRequest(group=GROUP),
                *(
                    pb.HeartbeatRequest(group=GROUP, client_type=kind)
                    for kind in (
                        pb.ClientType.PUSH_CONSUMER,
                        pb.ClientType.SIMPLE_CONSUMER,
                        pb.ClientType.PULL_CONSUMER,
                    )
                ),
            ],
            "": [
                pb.HeartbeatRequest(group=GROUP, client_type=pb.ClientType.PRODUCER),
                pb.NotifyClientTerminationRequest(group=BLANK),
                pb.GetOffsetRequest(group=GROUP),
            ],
        }
        for expected, messages in table.items():
            for message in messages:
                self.assertEqual(texts(message), expected, message)

    def test_names(self) -> None:
        """White lists have RocketMQ's names of messages."""
        name = full_name(pb.HeartbeatRequest())
        self.assertEqual(name, "apache.rocketmq.v2.HeartbeatRequest")

    def test_settings(self) -> None:
        """Settings name topics to publish, or a group and topics to subscribe."""
        publishing = pb.Settings(publishing=pb.Publishing(topics=[TOPIC]))
        entry = pb.SubscriptionEntry(topic=TOPIC)
        subscription = pb.Settings(
            subscription=pb.Subscription(group=GROUP, subscriptions=[entry])
        )
        for settings, expected in (
            (publishing, "Pub Topic:T"),
            (subscription, "Sub Group:G, Sub Topic:T"),
        ):
            self.assertEqual(texts(pb.TelemetryCommand(settings=settings)), expected)
        self.assertEqual(texts(pb.TelemetryCommand()), "")

    def test_blankNames(self) -> None:
        """What is missing is refused in the Proxy's words."""
        for message, words in (
            (pb.SendMessageRequest(), "message is null."),
            (pb.SendMessageRequest(messages=[pb.Message()]), "topic is null."),
            (pb.QueryRouteRequest(topic=BLANK), "topic is null."),
            (pb.ReceiveMessageRequest(group=GROUP), "messageQueue is null."),
            (pb.AckMessageRequest(topic=TOPIC), "group is null."),
            (pb.AckMessageRequest(group=GROUP), "topic is null."),
            (
                pb.TelemetryCommand(settings=pb.Settings()),
                "settings command doesn't have publishing or subscription.",
            ),
        ):
            with self.assertRaises(NoPermission) as caught:
                texts(message)
            self.assertEqual(caught.exception.remark, words)
