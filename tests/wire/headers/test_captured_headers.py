"""Tests of the typed headers against captured frames."""

from __future__ import annotations

from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.frames import decode
from rocketbroker.wire.headers import (
    admin,
    client,
    namesrv,
    pull,
    send,
)
from rocketbroker.wire.headers.header import Header
from tests.wire.vectors import vectors

REQUESTS: Final[dict[int, type[Header]]] = {
    RequestCode.SEND_MESSAGE: send.SendMessageRequestHeader,
    RequestCode.SEND_MESSAGE_V2: send.SendMessageRequestHeaderV2,
    RequestCode.SEND_BATCH_MESSAGE: send.SendMessageRequestHeaderV2,
    RequestCode.SEND_REPLY_MESSAGE_V2: send.SendMessageRequestHeaderV2,
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: send.ReplyMessageRequestHeader,
    RequestCode.CONSUMER_SEND_MSG_BACK: send.ConsumerSendMsgBackRequestHeader,
    RequestCode.END_TRANSACTION: send.EndTransactionRequestHeader,
    RequestCode.CHECK_TRANSACTION_STATE: (send.CheckTransactionStateRequestHeader),
    RequestCode.PULL_MESSAGE: pull.PullMessageRequestHeader,
    RequestCode.LITE_PULL_MESSAGE: pull.PullMessageRequestHeader,
    RequestCode.QUERY_MESSAGE: pull.QueryMessageRequestHeader,
    RequestCode.VIEW_MESSAGE_BY_ID: pull.ViewMessageRequestHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: pull.QueryConsumerOffsetRequestHeader,
    RequestCode.UPDATE_CONSUMER_OFFSET: pull.UpdateConsumerOffsetRequestHeader,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: pull.SearchOffsetRequestHeader,
    RequestCode.GET_MAX_OFFSET: pull.GetMaxOffsetRequestHeader,
    RequestCode.GET_MIN_OFFSET: pull.GetMinOffsetRequestHeader,
    RequestCode.UNREGISTER_CLIENT: client.UnregisterClientRequestHeader,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: (
        client.GetConsumerListByGroupRequestHeader
    ),
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: (
        client.NotifyConsumerIdsChangedRequestHeader
    ),
    RequestCode.UPDATE_AND_CREATE_TOPIC: admin.CreateTopicRequestHeader,
    RequestCode.GET_TOPIC_STATS_INFO: admin.GetTopicStatsInfoRequestHeader,
    RequestCode.DELETE_TOPIC_IN_BROKER: admin.DeleteTopicRequestHeader,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: (admin.DeleteSubscriptionGroupRequestHeader),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: (
        admin.GetConsumerConnectionListRequestHeader
    ),
    RequestCode.GET_CONSUME_STATS: admin.GetConsumeStatsRequestHeader,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: admin.ResetOffsetRequestHeader,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: (admin.QueryTopicConsumeByWhoRequestHeader),
    RequestCode.GET_CONSUMER_RUNNING_INFO: (admin.GetConsumerRunningInfoRequestHeader),
    RequestCode.GET_TOPIC_CONFIG: admin.GetTopicConfigRequestHeader,
    RequestCode.PUT_KV_CONFIG: namesrv.PutKVConfigRequestHeader,
    RequestCode.DELETE_KV_CONFIG: namesrv.DeleteKVConfigRequestHeader,
    RequestCode.REGISTER_BROKER: namesrv.RegisterBrokerRequestHeader,
    RequestCode.UNREGISTER_BROKER: namesrv.UnRegisterBrokerRequestHeader,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: namesrv.GetRouteInfoRequestHeader,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: (namesrv.WipeWritePermOfBrokerRequestHeader),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: (namesrv.AddWritePermOfBrokerRequestHeader),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: (namesrv.DeleteTopicFromNamesrvRequestHeader),
}
ANSWERS: Final[dict[int, type[Header]]] = {
    RequestCode.PULL_MESSAGE: pull.PullMessageResponseHeader,
    RequestCode.LITE_PULL_MESSAGE: pull.PullMessageResponseHeader,
    RequestCode.QUERY_MESSAGE: pull.QueryMessageResponseHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: pull.QueryConsumerOffsetResponseHeader,
    RequestCode.GET_BROKER_CONFIG: admin.GetBrokerConfigResponseHeader,
    RequestCode.REGISTER_BROKER: namesrv.RegisterBrokerResponseHeader,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: (
        namesrv.WipeWritePermOfBrokerResponseHeader
    ),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: (namesrv.AddWritePermOfBrokerResponseHeader),
}
#: Fields that travel beside a header's own.
BESIDE: Final = {"_UNIQUE_KEY_QUERY", "MSG_REGION", "TRACE_ON", "ReqT"}


class CapturedTests(SynchronousTestCase):
    """What official servers and clients sent."""

    def check(self, answers: bool, headers: dict[int, type[Header]]) -> None:
        """All fields of these frames are read, and written as they were."""
        seen = set()
        for vector in vectors():
            cls = headers.get(vector.request_code)
            command = decode(vector.frame[4:])
            if cls is None or vector.is_answer is not answers or not command.ext:
                continue
            header = cls.from_ext(command.ext)
            written = header.to_ext()
            expected = {k: v for k, v in command.ext.items() if k not in BESIDE}
            self.assertEqual(
                {key: written.get(key) for key in expected}, expected, vector.label
            )
            if command.code == 0 or not answers:
                self.assertEqual(cls.lacking(command.ext), [], vector.label)
            seen.add(vector.request_code)
        self.assertGreater(len(seen), len(headers) // 2)

    def test_requests(self) -> None:
        """Headers know every field of captured requests, and none is lacking."""
        self.check(False, REQUESTS)

    def test_answers(self) -> None:
        """Headers know every field of captured answers."""
        self.check(True, ANSWERS)
