# -*- test-case-name: tests.broker.access.test_admin_port -*-
"""The admin port: what changes or destroys is answered there only, where there is one.

Who sends and consumes needs none of it, so that a firewall can keep clients from the
admin port. The port is announced nowhere; requests there are all that the main port
answers, so that tools have one address for their work.

Each request code that a broker serves is in one of the two lists: the codes that the
rules of ACL 2.0 count as an update, a creation or a deletion of something that is not a
message, or that those rules leave out and that leave a line about an administrator in
the log (C{docs/facts/security-metrics.md} 3.6).
"""

from __future__ import annotations

from typing import Final

from rocketbroker.errors import NoPermission
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command

#: Requests that change or destroy what is no message.
ADMINISTRATION: Final = frozenset(
    {
        # Topics.
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.CLEAN_UNUSED_TOPIC,
        # Groups, and how they consume.
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN,
        RequestCode.SET_MESSAGE_REQUEST_MODE,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        # Offsets.
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.CLONE_GROUP_OFFSET,
        # Messages that are waited for, or gone.
        RequestCode.RESUME_CHECK_HALF_MESSAGE,
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
        RequestCode.DELETE_EXPIRED_COMMITLOG,
        RequestCode.POP_ROLLBACK,
        # The broker.
        RequestCode.UPDATE_BROKER_CONFIG,
        RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
        RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
        RequestCode.SET_COMMITLOG_READ_MODE,
        RequestCode.RESET_MASTER_FLUSH_OFFSET,
        # Users and rules.
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
        RequestCode.DELETE_ACL_CONFIG,
        53,  # of 4.9: the addresses that need no account
        RequestCode.AUTH_CREATE_USER,
        RequestCode.AUTH_UPDATE_USER,
        RequestCode.AUTH_DELETE_USER,
        RequestCode.AUTH_CREATE_ACL,
        RequestCode.AUTH_UPDATE_ACL,
        RequestCode.AUTH_DELETE_ACL,
    }
)

#: Requests of clients, of other servers, and those that only look.
MESSAGING: Final = frozenset(
    {
        RequestCode.EXPLAIN_ACCESS,
        # Sends.
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.END_TRANSACTION,
        RequestCode.RECALL_MESSAGE,
        # Consumption.
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.POP_MESSAGE,
        RequestCode.PEEK_MESSAGE,
        RequestCode.ACK_MESSAGE,
        RequestCode.BATCH_ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        RequestCode.NOTIFICATION,
        RequestCode.POLLING_INFO,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.LOCK_BATCH_MQ,
        RequestCode.UNLOCK_BATCH_MQ,
        RequestCode.QUERY_ASSIGNMENT,
        # Clients.
        RequestCode.HEART_BEAT,
        RequestCode.UNREGISTER_CLIENT,
        RequestCode.CHECK_CLIENT_CONFIG,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        # Other servers.
        RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE,
        RequestCode.EXCHANGE_BROKER_HA_INFO,
        RequestCode.GET_ALL_TOPIC_CONFIG,
        RequestCode.GET_ALL_CONSUMER_OFFSET,
        RequestCode.GET_ALL_DELAY_OFFSET,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
        RequestCode.GET_TIMER_CHECK_POINT,
        RequestCode.GET_TIMER_METRICS,
        # Looks.
        RequestCode.QUERY_MESSAGE,
        RequestCode.VIEW_MESSAGE_BY_ID,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.GET_EARLIEST_MSG_STORETIME,
        RequestCode.GET_BROKER_CONFIG,
        RequestCode.GET_BROKER_RUNTIME_INFO,
        RequestCode.GET_BROKER_HA_STATUS,
        RequestCode.GET_TOPIC_STATS_INFO,
        RequestCode.GET_TOPIC_CONFIG,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
        RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        RequestCode.GET_PRODUCER_CONNECTION_LIST,
        RequestCode.GET_ALL_PRODUCER_INFO,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.GET_CONSUME_STATS,
        RequestCode.GET_BROKER_CONSUME_STATS,
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
        RequestCode.QUERY_TOPICS_BY_CONSUMER,
        RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER,
        RequestCode.QUERY_CONSUME_TIME_SPAN,
        RequestCode.QUERY_CORRECTION_OFFSET,
        RequestCode.QUERY_CONSUME_QUEUE,
        RequestCode.VIEW_BROKER_STATS_DATA,
        RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS,
        RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON,
        RequestCode.GET_COLD_DATA_FLOW_CTR_INFO,
        RequestCode.GET_GROUP_PROBLEMS,
        RequestCode.GET_SERVICES,
        RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
        54,  # of 4.9: all accounts
        RequestCode.AUTH_GET_USER,
        RequestCode.AUTH_LIST_USER,
        RequestCode.AUTH_GET_ACL,
        RequestCode.AUTH_LIST_ACL,
    }
)


def refuse(connection: IConnection, request: Command) -> None:
    """Stands before the requests of administration at clients' ports.

    @raise NoPermission: always.
    """
    raise NoPermission(
        f"request {request.code} changes or destroys, and this broker answers such "
        "requests at its admin port only (rocketbrokerAdminPort)"
    )
