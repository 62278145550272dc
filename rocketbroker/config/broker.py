# -*- test-case-name: tests.config.test_broker -*-
"""The settings of a broker: all keys of C{docs/facts/broker.md 25.1} and C{25.2}.

Other than in RocketMQ, metrics are on unless a setting says otherwise.
"""

from __future__ import annotations

from typing import ClassVar, Final

import attrs

from rocketbroker.config import machine
from rocketbroker.config.addresses import check_host, check_interface
from rocketbroker.config.keyed import (
    EXPORTERS,
    INT,
    LONG,
    PORT,
    POSITIVE,
    KeyedOptions,
    running,
)
from rocketbroker.config.paths import resolved
from rocketbroker.config.workers import check_workers

#: What the settings of POP do: a line for each attribute, for the page of settings.
_ABOUT_POP: Final = {
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

#: Attributes that are a long in Java, and have no bounds of their own.
_LONGS: Final = (
    "wait_time_mills_in_send_queue",
    "wait_time_mills_in_pull_queue",
    "wait_time_mills_in_lite_pull_queue",
    "wait_time_mills_in_heartbeat_queue",
    "wait_time_mills_in_transaction_queue",
    "wait_time_mills_in_ack_queue",
    "wait_time_mills_in_admin_broker_queue",
    "start_accept_send_request_time_stamp",
    "consumer_fallbehind_threshold",
    "filter_data_clean_time_span",
    "broker_not_active_timeout_millis",
    "broadcast_offset_expire_second",
    "broadcast_offset_expire_max_second",
    "max_pop_polling_size",
    "revive_interval",
    "revive_max_slow",
    "revive_scan_time",
    "revive_ack_wait_ms",
    "pop_long_polling_force_notify_interval",
    "pop_inflight_message_threshold",
    "load_balance_poll_name_server_interval",
    "transaction_time_out",
    "transaction_check_interval",
    "forward_timeout",
    "consumer_offset_update_version_step",
    "delay_offset_update_version_step",
    "sync_broker_metadata_period",
    "check_sync_state_set_period",
    "sync_controller_metadata_period",
    "controller_heart_beat_timeout_mills",
    "metric_grpc_exporter_time_out_in_mills",
    "metric_grpc_exporter_interval_in_mills",
    "metric_logging_exporter_interval_in_mills",
    "subscription_expired_timeout",
    "cg_cold_read_threshold",
    "global_cold_read_threshold",
)


@attrs.frozen(kw_only=True, eq=False, repr=False, slots=False)
class BrokerOptions(KeyedOptions):
    """The settings of a broker's own work."""

    IRREGULAR: ClassVar = {
        "broker_ip1": "brokerIP1",
        "broker_ip2": "brokerIP2",
        "pop_consumer_fs_service_init": "popConsumerFSServiceInit",
        "pop_consumer_kv_service_log": "popConsumerKVServiceLog",
        "pop_consumer_kv_service_init": "popConsumerKVServiceInit",
        "pop_consumer_kv_service_enable": "popConsumerKVServiceEnable",
        "skip_when_ck_re_put_reach_max_times": "skipWhenCKRePutReachMaxTimes",
        "use_pid_cold_ctr_strategy": "usePIDColdCtrStrategy",
    }
    BOUNDS: ClassVar = {
        **dict.fromkeys(_LONGS, LONG),
        "listen_port": PORT,
        "metrics_prom_exporter_port": PORT,
        "broker_id": (0, LONG[1]),
        "broker_permission": (0, 15),
        "default_topic_queue_nums": POSITIVE,
        "rocketbroker_advertised_port": PORT,
        "rocketbroker_admin_port": PORT,
        "rocketbroker_max_auto_topics": (0, INT[1]),
        "rocketbroker_max_auto_groups": (0, INT[1]),
        "rocketbroker_max_broadcast_clients": (0, INT[1]),
        "rocketbroker_max_metric_samples": (0, INT[1]),
        "rocketbroker_max_request_entries": POSITIVE,
        "flush_consumer_offset_interval": POSITIVE,
        "transaction_metric_flush_interval": POSITIVE,
        "register_broker_timeout_mills": POSITIVE,
        "register_name_server_period": POSITIVE,
        "update_name_server_addr_period": POSITIVE,
        "fetch_namesrv_addr_interval": (1, LONG[1]),
        "channel_expired_timeout": (1, LONG[1]),
        "short_polling_time_mills": (0, LONG[1]),
        "max_error_rate_of_bloom_filter": (1, 99),
        # The map of more would not fit into the extension of a queue.
        "expect_consumer_num_use_filter": (1, 1 << 16),
    }
    CHOICES: ClassVar = {
        "default_message_request_mode": ("PULL", "POP"),
        "metrics_exporter_type": EXPORTERS,
    }
    CHECKS: ClassVar = {
        "broker_ip1": check_host,
        "broker_ip2": check_host,
        "metrics_prom_exporter_host": check_interface,
        "rocketbroker_admin_address": check_interface,
        "workers": check_workers,
    }
    PATHS: ClassVar = {"broker_config_path": resolved, "rocketmq_home": resolved}
    ABOUT: ClassVar = {
        "broker_name": "the name that clients and name servers know this broker by",
        "broker_cluster_name": "the cluster that the broker joins",
        "broker_id": "0 for a master, and above it for a slave",
        "broker_config_path": "the file that requests change",
        "rocketmq_home": "where a warning looks for rules of ACL 1.0",
        "namesrv_addr": "the name servers, host:port;host:port",
        "fetch_name_srv_addr_by_dns_lookup": "each address of each name is one",
        "update_name_server_addr_period": "how often they are looked up so",
        "fetch_namesrv_addr_by_address_server": "without it, a page names them",
        "fetch_namesrv_addr_interval": "how often that page is asked",
        "broker_ip1": "the address that clients are told",
        "broker_ip2": "the address that slaves are told",
        "broker_permission": "4 read, 2 write, 6 both",
        "default_topic_queue_nums": "most queues of a topic that a send creates",
        "auto_create_topic_enable": "a send may create its topic",
        "cluster_topic_enable": "the cluster name is a topic",
        "broker_topic_enable": "the broker name is a topic",
        "auto_create_subscription_group": "a consumer may create its group",
        "acl_enable": "access is controlled as in 4.9, by conf/plain_acl.yml and the "
        "files of conf/acl (docs/security.rst)",
        "message_store_plug_in": "plug-ins between broker and store, by name",
        "msg_trace_topic_name": "the topic of message traces",
        "trace_topic_enable": "that topic is created at the start",
        "trace_on": "the trace switch told to clients with each send",
        "send_thread_pool_queue_capacity": "most sends waiting for the disk",
        "pull_thread_pool_queue_capacity": "most pulls waiting for messages",
        "lite_pull_thread_pool_queue_capacity": "shown in the broker's statistics",
        "ack_thread_pool_queue_capacity": "shown in the broker's statistics",
        "query_thread_pool_queue_capacity": "shown in the broker's statistics",
        "end_transaction_pool_queue_capacity": "shown in the broker's statistics",
        "broker_fast_failure_enable": "refuse requests that wait too long to be begun",
        "wait_time_mills_in_send_queue": "how long sends wait to be begun",
        "wait_time_mills_in_pull_queue": "the same of pulls",
        "wait_time_mills_in_lite_pull_queue": "of pulls of lite consumers",
        "wait_time_mills_in_heartbeat_queue": "of heartbeats",
        "wait_time_mills_in_transaction_queue": "of ends of transactions",
        "wait_time_mills_in_ack_queue": "of acknowledgements of POP",
        "wait_time_mills_in_admin_broker_queue": "of administrators' requests",
        "recall_message_enable": "producers may take back what waits for its time",
        "allow_recall_when_broker_not_writeable": "also where brokerPermission has no "
        "write",
        "start_accept_send_request_time_stamp": "sends before this time are refused",
        "flush_consumer_offset_interval": "time between writes of consumerOffset.json",
        "reject_transaction_message": "refuse half messages",
        "long_polling_enable": "a pull may wait for messages",
        "short_polling_time_mills": "how long it waits when long polling is off",
        "notify_consumer_ids_changed_enable": "members of a group learn of changes",
        "real_time_notify_consumer_change": "they learn of them at once",
        "region_id": "the region told to clients with each send",
        "enable_slave_acting_master": "a slave does the work of a master that is gone; "
        "on for all brokers of a name, and at name servers supportActingMaster",
        "enable_remote_escape": "an acting master gives messages to other groups",
        "skip_pre_online": "register at once, without waiting for the others of the "
        "name",
        "compatible_with_old_name_srv": "heartbeats that name servers of 4.9 know, too",
        "broker_heartbeat_interval": "time between heartbeats to name servers",
        "sync_broker_member_group_period": "time between looks at the group",
        "broker_not_active_timeout_millis": "silence after which it is gone",
        "register_broker_timeout_mills": "how long to wait for a name server",
        "slave_read_enable": "a slave serves pulls; a master sends slow readers to one",
        "enable_calc_filter_bit_map": "SQL92 filters are computed at dispatch",
        "reject_pull_consumer_enable": "refuse consumers that pull",
        "expect_consumer_num_use_filter": "groups that such a filter is sized for",
        "max_error_rate_of_bloom_filter": "how often such a filter may be wrong",
        "filter_data_clean_time_span": "a filter is kept for so long without consumers",
        "filter_support_retry": "filters apply to retried messages, too",
        "enable_property_filter": "allow SQL92 filters",
        "compressed_register": "registrations are compressed",
        "force_register": "register without asking for the data version first",
        "register_name_server_period": "time between registrations, 10000 to 60000",
        "enable_broadcast_offset_store": "keep offsets of broadcasting proxies",
        "broadcast_offset_expire_second": "such an offset is written when so old",
        "broadcast_offset_expire_max_second": "and forgotten when so old",
        "revive_queue_num": "queues of the topic that POP uses",
        "disable_consume_if_consumer_read_slowly": "groups that read too far behind "
        "may not consume any more",
        "consumer_fallbehind_threshold": "bytes of the log that are too far behind",
        "lite_pull_message_enable": "serve the pulls of lite consumers",
        "server_load_balancer_enable": "assign queues to consumers that ask for it",
        "default_message_request_mode": "PULL or POP: of groups that have no mode",
        **_ABOUT_POP,
        "forward_timeout": "how long another broker may take that has a part of a "
        "static topic's queue",
        "transaction_time_out": "age at which a half message is first checked back",
        "transaction_check_max": "checks after which a half message is discarded",
        "transaction_check_interval": "time between rounds of checks",
        "transaction_metric_flush_interval": "time between writes of their counters",
        "store_reply_message_enable": "replies to requests are stored, too",
        "use_server_side_reset_offset": "offsets are reset on the broker",
        "consumer_offset_update_version_step": "changes that make a new data version",
        "delay_offset_update_version_step": "the same of the offsets of delay levels",
        "lock_in_strict_mode": "queue locks need most of totalReplicas' votes",
        "validate_system_topic_when_update_topic": "system topics cannot be changed",
        "metrics_exporter_type": "PROM or DISABLE; the others export nothing yet",
        "metrics_prom_exporter_port": "the port of /metrics and /healthz; 0: none",
        "metrics_prom_exporter_host": "its address; empty: all",
        "metrics_label": "labels on every sample, key:value,key:value",
        "enable_remoting_metrics": "export the metrics of requests and connections",
        "enable_message_store_metrics": "export the metrics of the store",
        "enable_connection_metrics": "export the numbers of clients",
        "enable_transaction_metrics": "export the metrics of transactions",
        "enable_pop_metrics": "export the metrics of POP",
        "enable_stats_metrics": "export what goes in and out",
        "enable_request_metrics": "export sizes and times of messages",
        "enable_lag_and_dlq_metrics": "export lag and dead letters",
        "channel_expired_timeout": "silence after which a client is gone",
        "enable_single_topic_register": "a changed topic is registered alone",
        "enable_mixed_message_type": "allow topics of the type MIXED",
        "enable_split_registration": "topics are registered in parts",
        "split_registration_size": "topics in a part",
        "cg_cold_read_threshold": "cold data that a group may read in 5 s",
        "global_cold_read_threshold": "the same of all groups together",
        "config_black_list": "keys that no request may change",
        "clear_retry_topic_when_delete_topic": "retry topics of POP go with the topic",
        "enable_create_sys_group": "groups with system names may be created",
        "rocketbroker_advertised_port": "the port that clients are told, if it is not "
        "listenPort, as before a forwarded port; 0: it is (ours)",
        "rocketbroker_admin_port": "a port that alone answers requests that change or "
        "destroy; it is announced nowhere; 0: none, and the main port answers them "
        "(ours)",
        "rocketbroker_admin_address": "its address; empty: bindAddress (ours)",
        "rocketbroker_max_auto_topics": "most topics with which a send may create one; "
        "name servers take all topics in one frame of 16 MiB (ours)",
        "rocketbroker_max_auto_groups": "most groups with which a consumer may create "
        "one (ours)",
        "rocketbroker_max_broadcast_clients": "most broadcasting clients, by topic and "
        "group, whose offsets are kept (ours)",
        "rocketbroker_max_metric_samples": "most samples of topics and groups in one "
        "answer of /metrics; totals are always there (ours)",
        "rocketbroker_max_request_entries": "most entries of one request of an "
        "administrator or consumer: topics of a list (18), groups of a list (225), "
        "queues of a mapping (513), locks (41, 42), messages of a batch of "
        "acknowledgements (200151); several requests may make any number (ours)",
        "request_hooks": "plug-ins around each request (ours), by name",
        "attached_plugins": "plug-ins beside the broker (ours), by name",
        "dispatch_followers": "plug-ins that see each stored message (ours), by name",
        "workers": "processes that own the connections of clients: a number, or auto "
        "for one per core; 0: none (ours)",
    }
    UNITS: ClassVar = {
        **dict.fromkeys(
            (
                *(name for name in _LONGS if name.startswith("wait_time_mills_in_")),
                "start_accept_send_request_time_stamp",
                "flush_consumer_offset_interval",
                "short_polling_time_mills",
                "register_broker_timeout_mills",
                "broker_heartbeat_interval",
                "sync_broker_member_group_period",
                "broker_not_active_timeout_millis",
                "filter_data_clean_time_span",
                "register_name_server_period",
                "transaction_time_out",
                "transaction_check_interval",
                "forward_timeout",
                "transaction_metric_flush_interval",
                "channel_expired_timeout",
            ),
            "ms",
        ),
        "broadcast_offset_expire_second": "s",
        "cg_cold_read_threshold": "bytes",
        "global_cold_read_threshold": "bytes",
        "broadcast_offset_expire_max_second": "s",
        "max_error_rate_of_bloom_filter": "percent",
    }

    broker_name: str = attrs.field(factory=machine.host_name)
    broker_cluster_name: str = "DefaultCluster"
    broker_id: int = 0
    broker_config_path: str | None = None
    rocketmq_home: str | None = attrs.field(factory=machine.rocketmq_home)
    namesrv_addr: str | None = attrs.field(factory=machine.name_servers)
    listen_port: int = 6888
    broker_ip1: str = attrs.field(factory=machine.local_address)
    broker_ip2: str = attrs.field(factory=machine.local_address)
    recover_concurrently: bool = False
    broker_permission: int = running(6)
    default_topic_queue_nums: int = running(8)
    auto_create_topic_enable: bool = running(True)
    cluster_topic_enable: bool = running(True)
    broker_topic_enable: bool = running(True)
    auto_create_subscription_group: bool = running(True)
    message_store_plug_in: str = ""
    msg_trace_topic_name: str = "RMQ_SYS_TRACE_TOPIC"
    trace_topic_enable: bool = running(False)
    trace_on: bool = running(True)
    send_message_thread_pool_nums: int = attrs.field(factory=machine.few_processors)
    put_message_future_thread_pool_nums: int = attrs.field(
        factory=machine.few_processors
    )
    pull_message_thread_pool_nums: int = attrs.field(factory=machine.twice_and_16)
    lite_pull_message_thread_pool_nums: int = attrs.field(factory=machine.twice_and_16)
    ack_message_thread_pool_nums: int = 16
    process_reply_message_thread_pool_nums: int = attrs.field(
        factory=machine.twice_and_16
    )
    query_message_thread_pool_nums: int = attrs.field(factory=machine.eight_more)
    admin_broker_thread_pool_nums: int = 16
    client_manage_thread_pool_nums: int = 32
    consumer_manage_thread_pool_nums: int = 32
    load_balance_processor_thread_pool_nums: int = 32
    heartbeat_thread_pool_nums: int = attrs.field(factory=machine.at_most_32)
    recover_thread_pool_nums: int = 32
    end_transaction_thread_pool_nums: int = attrs.field(
        factory=machine.transaction_threads
    )
    send_thread_pool_queue_capacity: int = running(10000)
    put_thread_pool_queue_capacity: int = 10000
    pull_thread_pool_queue_capacity: int = running(100000)
    lite_pull_thread_pool_queue_capacity: int = running(100000)
    ack_thread_pool_queue_capacity: int = running(100000)
    reply_thread_pool_queue_capacity: int = 10000
    query_thread_pool_queue_capacity: int = running(20000)
    client_manager_thread_pool_queue_capacity: int = 1000000
    consumer_manager_thread_pool_queue_capacity: int = 1000000
    heartbeat_thread_pool_queue_capacity: int = 50000
    end_transaction_pool_queue_capacity: int = running(100000)
    admin_broker_thread_pool_queue_capacity: int = 10000
    load_balance_thread_pool_queue_capacity: int = 100000
    broker_fast_failure_enable: bool = running(True)
    wait_time_mills_in_send_queue: int = running(200)
    wait_time_mills_in_pull_queue: int = running(5000)
    wait_time_mills_in_lite_pull_queue: int = running(5000)
    wait_time_mills_in_heartbeat_queue: int = running(31000)
    wait_time_mills_in_transaction_queue: int = running(3000)
    wait_time_mills_in_ack_queue: int = running(3000)
    wait_time_mills_in_admin_broker_queue: int = running(5000)
    start_accept_send_request_time_stamp: int = running(0)
    flush_consumer_offset_interval: int = running(5000)
    flush_consumer_offset_history_interval: int = 60000
    reject_transaction_message: bool = running(False)
    fetch_name_srv_addr_by_dns_lookup: bool = False
    fetch_namesrv_addr_by_address_server: bool = False
    fetch_namesrv_addr_interval: int = running(10000)
    long_polling_enable: bool = running(True)
    short_polling_time_mills: int = running(1000)
    notify_consumer_ids_changed_enable: bool = running(True)
    real_time_notify_consumer_change: bool = running(True)
    high_speed_mode: bool = False
    commercial_base_count: int = 1
    commercial_size_per_msg: int = 4096
    account_stats_enable: bool = True
    account_stats_print_zero_values: bool = True
    max_stats_idle_time_in_minutes: int = -1
    transfer_msg_by_heap: bool = True
    region_id: str = running("DefaultRegion")
    register_broker_timeout_mills: int = running(24000)
    send_heartbeat_timeout_millis: int = 1000
    slave_read_enable: bool = running(False)
    disable_consume_if_consumer_read_slowly: bool = running(False)
    consumer_fallbehind_threshold: int = running(17179869184)
    enable_calc_filter_bit_map: bool = False
    reject_pull_consumer_enable: bool = running(False)
    expect_consumer_num_use_filter: int = 32
    max_error_rate_of_bloom_filter: int = 20
    filter_data_clean_time_span: int = running(86400000)
    filter_support_retry: bool = running(False)
    enable_property_filter: bool = running(False)
    compressed_register: bool = running(False)
    force_register: bool = running(True)
    register_name_server_period: int = running(30000)
    update_name_server_addr_period: int = running(120000)
    broker_heartbeat_interval: int = 1000
    broker_not_active_timeout_millis: int = 10000
    enable_net_work_flow_control: bool = False
    enable_broadcast_offset_store: bool = running(True)
    broadcast_offset_expire_second: int = running(120)
    broadcast_offset_expire_max_second: int = running(300)
    pop_polling_size: int = running(1024)
    pop_polling_map_size: int = 100000
    pop_polling_map_expire_time_seconds: int = 600
    max_pop_polling_size: int = running(100000)
    revive_queue_num: int = 8
    revive_interval: int = running(1000)
    revive_max_slow: int = 3
    revive_scan_time: int = 10000
    enable_skip_long_awaiting_ack: bool = False
    revive_ack_wait_ms: int = 180000
    enable_pop_log: bool = False
    enable_pop_buffer_merge: bool = running(False)
    pop_ck_stay_buffer_time: int = running(10000)
    pop_ck_stay_buffer_time_out: int = running(3000)
    pop_ck_max_buffer_size: int = running(200000)
    pop_ck_offset_max_queue_size: int = running(20000)
    enable_pop_batch_ack: bool = False
    pop_long_polling_force_notify_interval: int = running(800)
    enable_notify_before_pop_calculate_lag: bool = True
    enable_notify_after_pop_order_lock_release: bool = running(True)
    init_pop_offset_by_check_msg_in_mem: bool = running(True)
    retrieve_message_from_pop_retry_topic_v1: bool = running(True)
    enable_retry_topic_v2: bool = running(False)
    pop_from_retry_probability: int = running(20)
    pop_consumer_fs_service_init: bool = True
    pop_consumer_kv_service_log: bool = False
    pop_consumer_kv_service_init: bool = False
    pop_consumer_kv_service_enable: bool = running(False)
    pop_revive_max_return_size_per_read: int = 16384
    pop_revive_max_attempt_times: int = 16
    pop_response_return_actual_retry_topic: bool = running(False)
    pop_inflight_message_threshold: int = running(10000)
    enable_pop_message_threshold: bool = running(False)
    skip_when_ck_re_put_reach_max_times: bool = False
    append_ack_async: bool = False
    append_ck_async: bool = False
    lite_pull_message_enable: bool = running(True)
    sync_broker_member_group_period: int = 1000
    load_balance_poll_name_server_interval: int = 30000
    clean_offline_broker_interval: int = 30000
    server_load_balancer_enable: bool = running(True)
    default_message_request_mode: str = running("PULL")
    default_pop_share_queue_num: int = running(-1)
    transaction_time_out: int = running(6000)
    transaction_check_max: int = running(15)
    transaction_check_interval: int = running(30000)
    transaction_metric_flush_interval: int = running(3000)
    transaction_op_msg_max_size: int = 4096
    transaction_op_batch_interval: int = 3000
    acl_enable: bool = False
    store_reply_message_enable: bool = running(True)
    enable_detail_stat: bool = True
    auto_delete_unused_stats: bool = True
    isolate_log_enable: bool = False
    forward_timeout: int = running(3000)
    enable_slave_acting_master: bool = False
    enable_remote_escape: bool = False
    skip_pre_online: bool = False
    async_send_enable: bool = True
    use_server_side_reset_offset: bool = running(True)
    consumer_offset_update_version_step: int = running(500)
    delay_offset_update_version_step: int = running(200)
    lock_in_strict_mode: bool = running(False)
    compatible_with_old_name_srv: bool = True
    enable_controller_mode: bool = False
    controller_addr: str = ""
    fetch_controller_addr_by_dns_lookup: bool = False
    sync_broker_metadata_period: int = 5000
    check_sync_state_set_period: int = 5000
    sync_controller_metadata_period: int = 10000
    controller_heart_beat_timeout_mills: int = 10000
    broker_election_priority: int = 2147483647
    validate_system_topic_when_update_topic: bool = running(True)
    use_static_subscription: bool = False
    metrics_exporter_type: str = "PROM"
    metrics_otel_cardinality_limit: int = 50000
    metrics_grpc_exporter_target: str = ""
    metrics_grpc_exporter_header: str = ""
    metric_grpc_exporter_time_out_in_mills: int = 3000
    metric_grpc_exporter_interval_in_mills: int = 60000
    metric_logging_exporter_interval_in_mills: int = 10000
    metrics_prom_exporter_port: int = 5557
    metrics_prom_exporter_host: str = ""
    metrics_label: str = ""
    metrics_in_delta: bool = False
    enable_remoting_metrics: bool = running(True)
    enable_message_store_metrics: bool = running(True)
    enable_pop_metrics: bool = running(True)
    enable_connection_metrics: bool = running(True)
    enable_transaction_metrics: bool = running(True)
    enable_stats_metrics: bool = running(True)
    enable_request_metrics: bool = running(True)
    enable_lag_and_dlq_metrics: bool = running(True)
    channel_expired_timeout: int = running(120000)
    subscription_expired_timeout: int = 600000
    estimate_accumulation: bool = True
    cold_ctr_strategy_enable: bool = False
    use_pid_cold_ctr_strategy: bool = True
    cg_cold_read_threshold: int = running(3145728)
    global_cold_read_threshold: int = running(104857600)
    enable_single_topic_register: bool = running(False)
    enable_mixed_message_type: bool = running(False)
    enable_split_registration: bool = running(False)
    split_registration_size: int = running(800)
    enable_split_metadata: bool = True
    split_metadata_size: int = 2000
    enable_fast_channel_event_process: bool = False
    print_channel_groups: bool = False
    print_channel_groups_min_num: int = 5
    config_black_list: str = "configBlackList;brokerConfigPath"
    clear_retry_topic_when_delete_topic: bool = running(True)
    enable_lmq_stats: bool = False
    config_manager_version: str = "v1"
    allow_recall_when_broker_not_writeable: bool = running(True)
    recall_message_enable: bool = running(False)
    enable_register_producer: bool = True
    enable_create_sys_group: bool = running(True)
    dispatch_followers: str = ""
    request_hooks: str = ""
    attached_plugins: str = ""
    rocketbroker_advertised_port: int = 0
    rocketbroker_admin_port: int = 0
    rocketbroker_admin_address: str = ""
    rocketbroker_max_auto_topics: int = running(19_000)
    rocketbroker_max_auto_groups: int = running(19_000)
    rocketbroker_max_broadcast_clients: int = running(65_536)
    rocketbroker_max_metric_samples: int = running(100_000)
    rocketbroker_max_request_entries: int = running(10_000)
    workers: str = "0"
