# -*- test-case-name: tests.config.test_broker -*-
"""What the settings of POP do, for the page of settings."""

from __future__ import annotations

from typing import Final

#: A line for each attribute of L{BrokerOptions<rocketbroker.config.broker>}.
ABOUT_POP: Final = {
    "default_pop_share_queue_num": "members of a group with which one shares its "
    "queues in that mode; all if not above 0",
    "pop_polling_size": "most pops of a group that wait for a queue",
    "max_pop_polling_size": "most pops that wait",
    "revive_interval": "time between looks at messages not acknowledged",
    "enable_pop_buffer_merge": "check points of POP stay in memory for a while",
    "pop_ck_stay_buffer_time": "for how long",
    "pop_ck_stay_buffer_time_out": "and until when before they are due",
    "pop_ck_max_buffer_size": "most of them",
    "pop_ck_offset_max_queue_size": "most of them of a queue",
    "pop_long_polling_force_notify_interval": "so many messages wake a pop that "
    "wants none of them",
    "enable_notify_after_pop_order_lock_release": "a queue that is free wakes "
    "consumers in order",
    "init_pop_offset_by_check_msg_in_mem": "new groups get all messages if the "
    "first is in memory",
    "retrieve_message_from_pop_retry_topic_v1": "with enableRetryTopicV2 both "
    "kinds of retry topics are read",
    "enable_retry_topic_v2": "names of retry topics of POP have a plus",
    "pop_from_retry_probability": "pops of 100 that look for retried messages first",
    "pop_consumer_kv_service_enable": "refuses pops: there is no key-value store",
    "pop_response_return_actual_retry_topic": "retried messages keep their topic",
    "pop_inflight_message_threshold": "most messages of a queue in flight",
    "enable_pop_message_threshold": "that limit holds",
    "skip_when_ck_re_put_reach_max_times": "a message that could not be given out "
    "again 17 times is given up",
}
