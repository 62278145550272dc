"""Tests of the typed headers against captured frames."""

from __future__ import annotations

from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire import (
    admin_headers,
    client_headers,
    namesrv_headers,
    pull_headers,
    send_headers,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.frames import decode
from rocketbroker.wire.header import Header
from tests.wire.vectors import vectors

REQUESTS: Final[dict[int, type[Header]]] = {
    RequestCode.SEND_MESSAGE: send_headers.SendMessageRequestHeader,
    RequestCode.SEND_MESSAGE_V2: send_headers.SendMessageRequestHeaderV2,
    RequestCode.SEND_BATCH_MESSAGE: send_headers.SendMessageRequestHeaderV2,
    RequestCode.SEND_REPLY_MESSAGE_V2: send_headers.SendMessageRequestHeaderV2,
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: send_headers.ReplyMessageRequestHeader,
    RequestCode.CONSUMER_SEND_MSG_BACK: send_headers.ConsumerSendMsgBackRequestHeader,
    RequestCode.END_TRANSACTION: send_headers.EndTransactionRequestHeader,
    RequestCode.CHECK_TRANSACTION_STATE: (
        send_headers.CheckTransactionStateRequestHeader
    ),
    RequestCode.PULL_MESSAGE: pull_headers.PullMessageRequestHeader,
    RequestCode.LITE_PULL_MESSAGE: pull_headers.PullMessageRequestHeader,
    RequestCode.QUERY_MESSAGE: pull_headers.QueryMessageRequestHeader,
    RequestCode.VIEW_MESSAGE_BY_ID: pull_headers.ViewMessageRequestHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: pull_headers.QueryConsumerOffsetRequestHeader,
    RequestCode.UPDATE_CONSUMER_OFFSET: pull_headers.UpdateConsumerOffsetRequestHeader,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: pull_headers.SearchOffsetRequestHeader,
    RequestCode.GET_MAX_OFFSET: pull_headers.GetMaxOffsetRequestHeader,
    RequestCode.GET_MIN_OFFSET: pull_headers.GetMinOffsetRequestHeader,
    RequestCode.HEART_BEAT: client_headers.HeartbeatRequestHeader,
    RequestCode.UNREGISTER_CLIENT: client_headers.UnregisterClientRequestHeader,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: (
        client_headers.GetConsumerListByGroupRequestHeader
    ),
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: (
        client_headers.NotifyConsumerIdsChangedRequestHeader
    ),
    RequestCode.UPDATE_AND_CREATE_TOPIC: admin_headers.CreateTopicRequestHeader,
    RequestCode.GET_TOPIC_STATS_INFO: admin_headers.GetTopicStatsInfoRequestHeader,
    RequestCode.DELETE_TOPIC_IN_BROKER: admin_headers.DeleteTopicRequestHeader,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: (
        admin_headers.DeleteSubscriptionGroupRequestHeader
    ),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: (
        admin_headers.GetConsumerConnectionListRequestHeader
    ),
    RequestCode.GET_CONSUME_STATS: admin_headers.GetConsumeStatsRequestHeader,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: admin_headers.ResetOffsetRequestHeader,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: (
        admin_headers.QueryTopicConsumeByWhoRequestHeader
    ),
    RequestCode.GET_CONSUMER_RUNNING_INFO: (
        admin_headers.GetConsumerRunningInfoRequestHeader
    ),
    RequestCode.GET_BROKER_CONSUME_STATS: admin_headers.GetConsumeStatsInBrokerHeader,
    RequestCode.GET_TOPIC_CONFIG: admin_headers.GetTopicConfigRequestHeader,
    RequestCode.PUT_KV_CONFIG: namesrv_headers.PutKVConfigRequestHeader,
    RequestCode.DELETE_KV_CONFIG: namesrv_headers.DeleteKVConfigRequestHeader,
    RequestCode.REGISTER_BROKER: namesrv_headers.RegisterBrokerRequestHeader,
    RequestCode.UNREGISTER_BROKER: namesrv_headers.UnRegisterBrokerRequestHeader,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: namesrv_headers.GetRouteInfoRequestHeader,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: (
        namesrv_headers.WipeWritePermOfBrokerRequestHeader
    ),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: (
        namesrv_headers.AddWritePermOfBrokerRequestHeader
    ),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: (
        namesrv_headers.DeleteTopicFromNamesrvRequestHeader
    ),
}
ANSWERS: Final[dict[int, type[Header]]] = {
    RequestCode.SEND_MESSAGE: send_headers.SendMessageResponseHeader,
    RequestCode.SEND_MESSAGE_V2: send_headers.SendMessageResponseHeader,
    RequestCode.SEND_BATCH_MESSAGE: send_headers.SendMessageResponseHeader,
    RequestCode.PULL_MESSAGE: pull_headers.PullMessageResponseHeader,
    RequestCode.LITE_PULL_MESSAGE: pull_headers.PullMessageResponseHeader,
    RequestCode.QUERY_MESSAGE: pull_headers.QueryMessageResponseHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: pull_headers.QueryConsumerOffsetResponseHeader,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: pull_headers.SearchOffsetResponseHeader,
    RequestCode.GET_MAX_OFFSET: pull_headers.GetMaxOffsetResponseHeader,
    RequestCode.GET_MIN_OFFSET: pull_headers.GetMinOffsetResponseHeader,
    RequestCode.GET_BROKER_CONFIG: admin_headers.GetBrokerConfigResponseHeader,
    RequestCode.REGISTER_BROKER: namesrv_headers.RegisterBrokerResponseHeader,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: (
        namesrv_headers.WipeWritePermOfBrokerResponseHeader
    ),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: (
        namesrv_headers.AddWritePermOfBrokerResponseHeader
    ),
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
