# -*- test-case-name: tests.config.test_store -*-
"""The settings of a store: all keys of C{docs/facts/store.md 22}, odd spellings kept.

Those without a setter in RocketMQ (C{init=False}) are printed but cannot be set.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from rocketbroker.config import machine
from rocketbroker.config.addresses import networks
from rocketbroker.config.hours import parse_hours
from rocketbroker.config.keyed import (
    INT,
    LONG,
    PORT,
    POSITIVE,
    KeyedOptions,
    running,
)
from rocketbroker.config.levels import DELAY_LEVELS, parse_levels
from rocketbroker.config.paths import all_resolved, resolved


@attrs.frozen(kw_only=True, eq=False, repr=False, slots=False)
class StoreOptions(KeyedOptions):
    """Where messages are kept, and how."""

    IRREGULAR: ClassVar = {
        "check_crc_on_recover": "checkCRCOnRecover",
        "enabled_append_prop_crc": "enabledAppendPropCRC",
        "force_verify_prop_crc": "forceVerifyPropCRC",
        "clean_rocks_db_dirty_cq_interval_min": "cleanRocksDBDirtyCQIntervalMin",
        "stat_rocks_dbcq_interval_sec": "statRocksDBCQIntervalSec",
        "real_time_persist_rocks_db_config": "realTimePersistRocksDBConfig",
        "enable_rocks_db_log": "enableRocksDBLog",
        "rocksdb_cq_double_write_enable": "rocksdbCQDoubleWriteEnable",
        "combine_cq_loading_cq_types": "combineCQLoadingCQTypes",
        "combine_cq_prefer_cq_type": "combineCQPreferCQType",
        "combine_assign_offset_cq_type": "combineAssignOffsetCQType",
        "combine_cq_enable_check_self": "combineCQEnableCheckSelf",
        "combine_cq_max_extra_search_commit_log_files": (
            "combineCQMaxExtraSearchCommitLogFiles"
        ),
        "use_abs_lock": "useABSLock",
    }
    BOUNDS: ClassVar = {
        "mapped_file_size_commit_log": POSITIVE,
        "mapped_file_size_consume_queue": POSITIVE,
        "max_message_size": POSITIVE,
        "max_filter_message_size": POSITIVE,
        "flush_interval_commit_log": POSITIVE,
        "flush_interval_consume_queue": POSITIVE,
        "sync_flush_timeout": POSITIVE,
        "clean_resource_interval": POSITIVE,
        "delete_commit_log_files_interval": (0, INT[1]),
        "delete_consume_queue_files_interval": (0, INT[1]),
        "redelete_hanged_file_interval": (0, INT[1]),
        "file_reserved_time": (0, INT[1]),
        "delete_file_batch_max": POSITIVE,
        "replicas_per_disk_partition": POSITIVE,
        "flush_delay_offset_interval": POSITIVE,
        "mapped_file_size_timer_log": (136, INT[1]),
        "timer_flush_interval_ms": POSITIVE,
        "timer_max_delay_sec": POSITIVE,
        "timer_congest_num_each_slot": (0, INT[1]),
        "slave_timeout": POSITIVE,
        "ha_send_heartbeat_interval": POSITIVE,
        "ha_housekeeping_interval": POSITIVE,
        "ha_transfer_batch_size": POSITIVE,
        "ha_listen_port": (INT[0], PORT[1]),
        "max_transfer_bytes_on_message_in_memory": POSITIVE,
        "max_transfer_count_on_message_in_memory": POSITIVE,
        "max_transfer_bytes_on_message_in_disk": POSITIVE,
        "max_transfer_count_on_message_in_disk": POSITIVE,
        "rocketbroker_max_pull_messages": (0, 1 << 16),
        "rocketbroker_max_pull_bytes": (1, 8 << 20),
        "rocketbroker_max_unflushed_bytes": (1, LONG[1]),
        "access_message_in_memory_max_ratio": (0, 100),
        "disk_space_enough_bytes": (0, LONG[1]),
        "os_page_cache_busy_time_out_mills": LONG,
        "ha_max_gap_not_in_sync": LONG,
        "max_ha_transfer_byte_in_second": LONG,
        "ha_max_time_slave_not_catchup": LONG,
        "max_checksum_range": LONG,
    }
    CHOICES: ClassVar = {
        "broker_role": ("ASYNC_MASTER", "SYNC_MASTER", "SLAVE"),
        "flush_disk_type": ("ASYNC_FLUSH", "SYNC_FLUSH"),
    }
    CHECKS: ClassVar = {
        "message_delay_level": parse_levels,
        "delete_when": parse_hours,
        "ha_trusted_addresses": networks,
    }
    PATHS: ClassVar = {
        "store_path_root_dir": resolved,
        "store_path_commit_log": all_resolved,
        "read_only_commit_log_store_paths": all_resolved,
        "ha_secret_file": resolved,
    }
    ABOUT: ClassVar = {
        "store_path_root_dir": "the directory of the store",
        "store_path_commit_log": "the commit log, by default in the root",
        "mapped_file_size_commit_log": "size of a commit log segment",
        "mapped_file_size_consume_queue": "size of a consume queue file",
        "flush_interval_commit_log": "time between flushes of the log with ASYNC_FLUSH",
        "flush_commit_log_least_pages": "less waits for the thorough interval",
        "flush_commit_log_thorough_interval": "after it less is flushed, too",
        "flush_commit_log_timed": "false: appends can wake a flush",
        "wake_flush_when_put_message": "an append does so, if not timed",
        "flush_interval_consume_queue": "time between flushes of queues",
        "flush_consume_queue_least_pages": "less waits for the thorough interval",
        "flush_consume_queue_thorough_interval": "after it less is flushed, too",
        "read_un_committed": "with SYNC_FLUSH readers do not wait for the flush",
        "warm_maped_file_enable": "write zeros into the segment that is made ahead",
        "flush_least_pages_when_warm_maped_file": "sync after so many of them",
        "read_only_commit_log_store_paths": "log directories that get no new segment",
        "clean_resource_interval": "time between rounds of cleaning",
        "delete_when": "hours of the day when expired files go, as in 03;04",
        "file_reserved_time": "age at which a file has expired",
        "delete_file_batch_max": "most segments that go in one round",
        "delete_commit_log_files_interval": "pause after removing a log file",
        "delete_consume_queue_files_interval": "pause after removing a queue file",
        "redelete_hanged_file_interval": "when a file in use is tried again",
        "clean_file_forcibly_enable": "remove the oldest before the disk is full",
        "replicas_per_disk_partition": "brokers that share the log's disk",
        "logical_disk_space_clean_forcibly_threshold": "part of a share: any may go",
        "disk_max_used_space_ratio": "so full a disk loses expired files",
        "disk_space_warning_level_ratio": "so full a disk refuses sends",
        "disk_fall_recorded": "without it no group is far behind for "
        "disableConsumeIfConsumerReadSlowly",
        "disk_space_enough_bytes": "no disk is full with so many bytes free (ours)",
        "disk_space_clean_forcibly_ratio": "so full a disk loses any old file",
        "max_message_size": "largest body",
        "max_filter_message_size": "queue entries that one pull looks at",
        "check_crc_on_recover": "check bodies when recovering",
        "enabled_append_prop_crc": "give each record a CRC of all of it",
        "force_verify_prop_crc": "check that, too, when recovering",
        "cold_data_flow_control_enable": "who reads much cold data is slowed",
        "max_transfer_bytes_on_message_in_memory": "most bytes of a pull",
        "max_transfer_count_on_message_in_memory": "most messages of a pull",
        "max_transfer_bytes_on_message_in_disk": "most bytes of a pull of old messages",
        "max_transfer_count_on_message_in_disk": "most messages of a pull of old ones",
        "rocketbroker_max_pull_messages": "most messages for a client that asks for "
        "more than the maxTransferCount of ordinary pulls; 0: off (ours)",
        "rocketbroker_max_pull_bytes": "most bytes for such a client (ours)",
        "rocketbroker_max_unflushed_bytes": "most bytes not on the disk with "
        "ASYNC_FLUSH; more sends are refused (ours)",
        "os_page_cache_busy_time_out_mills": "after a write or flush of more than this "
        "sends are refused",
        "access_message_in_memory_max_ratio": "memory that holds new messages",
        "ha_listen_port": "the port of replication, by default the main port + 1",
        "ha_send_heartbeat_interval": "a silent side of replication says that it lives",
        "ha_housekeeping_interval": "a side that was silent for so long is gone",
        "ha_transfer_batch_size": "how much of the log a frame to slaves holds",
        "ha_trusted_addresses": "hosts and networks whose connections to haListenPort "
        "count as copies, as in 10.0.0.7;10.1.0.0/16, beside those of slaves that name "
        "servers know (ours)",
        "ha_serve_strangers": "send the log to other hosts, too; their copies do not "
        "count (ours)",
        "ha_tls": "a slave speaks TLS to its master, which is one of ours (ours)",
        "ha_tls_required": "haListenPort closes connections without TLS (ours)",
        "ha_secret_file": "a file with a secret that slaves and masters prove to each "
        "other, and whoever sends requests 905 to 908; RocketMQ's brokers cannot "
        "(ours)",
        "ha_max_gap_not_in_sync": "so far behind a slave is no longer in sync",
        "ha_flow_control_enable": "slaves are sent no more than "
        "maxHaTransferByteInSecond",
        "max_ha_transfer_byte_in_second": "how much of the log a slave is sent in a "
        "second, with haFlowControlEnable",
        "broker_role": "ASYNC_MASTER, SYNC_MASTER or SLAVE",
        "offset_check_in_slave": "a slave corrects readers' offsets, too",
        "ha_master_address": "where a slave finds its master; else name servers say it",
        "flush_disk_type": "ASYNC_FLUSH, or SYNC_FLUSH: on the disk when answered",
        "sync_flush_timeout": "how long a send waits for the disk with SYNC_FLUSH",
        "slave_timeout": "how long a send waits for copies with SYNC_MASTER",
        "message_delay_level": "the delay of each level, s, m, h or d",
        "flush_delay_offset_interval": "time between writes of the levels' offsets",
        "enable_schedule_message_stats": "count delayed messages when they are due",
        "enable_schedule_async_deliver": "a broker before may have delivered so",
        "schedule_async_deliver_max_pending_limit": "how many it had under way",
        "auto_message_version_on_topic_len": "allow topics of more than 127 bytes",
        "total_replicas": "copies there should be, for lockInStrictMode and the start "
        "of brokers with enableSlaveActingMaster",
        "sync_master_flush_offset_when_startup": "note where a master's log ended",
        "in_sync_replicas": "copies that SYNC_MASTER waits for, this one included",
        "min_in_sync_replicas": "with enableAutoInSyncReplicas, how many are enough",
        "enable_auto_in_sync_replicas": "with enableSlaveActingMaster, wait for as "
        "many as there are, at most inSyncReplicas",
        "timer_wheel_enable": "messages may wait for any time",
        "mapped_file_size_timer_log": "size of a timer log segment",
        "timer_precision_ms": "how much time a slot is: 100, 200, 500 or 1000",
        "timer_roll_window_slot": "what is due more slots ahead is entered again",
        "timer_flush_interval_ms": "time between checkpoints of timers",
        "timer_intercept_delay_level": "delay levels wait in the timer wheel, too",
        "timer_max_delay_sec": "messages for a later time are refused",
        "disappear_time_after_start": "a start delivers no timers so long",
        "timer_stop_enqueue": "what is to wait is not entered",
        "timer_enable_check_metrics": "from 5 to 6 o'clock what waits is counted anew",
        "timer_metric_small_threshold": "of topics with fewer messages that wait",
        "timer_congest_num_each_slot": "a slot with more refuses some, with twice as "
        "many all",
        "enable_consume_queue_ext": "keep filters in an extension of the queues",
        "mapped_file_size_consume_queue_ext": "size of a file of the extension",
        "mapper_file_size_batch_consume_queue": "size of a queue file of inner batches",
        "message_index_enable": "keep an index of message keys",
        "data_read_ahead_enable": "the system reads ahead in the commit log",
        "max_hash_slot_num": "hash slots of an index file",
        "max_index_num": "entries of an index file",
        "max_msgs_num_batch": "most messages that a query by key finds",
        "default_query_max_num": "most of them when the query names no number",
        "enable_lmq": "LMQ (light message queues)",
        "enable_multi_dispatch": "a message may be in several LMQs",
        "max_lmq_consume_queue_num": "most LMQs",
        "travel_cq_file_num_when_get_message": "queue files that one pull passes",
    }
    UNITS: ClassVar = {
        **dict.fromkeys(
            (
                "mapped_file_size_commit_log",
                "mapped_file_size_consume_queue",
                "mapped_file_size_consume_queue_ext",
                "mapped_file_size_timer_log",
                "mapper_file_size_batch_consume_queue",
                "disk_space_enough_bytes",
                "max_message_size",
                "max_filter_message_size",
                "max_transfer_bytes_on_message_in_memory",
                "max_transfer_bytes_on_message_in_disk",
                "rocketbroker_max_pull_bytes",
                "rocketbroker_max_unflushed_bytes",
                "ha_transfer_batch_size",
                "ha_max_gap_not_in_sync",
                "max_ha_transfer_byte_in_second",
            ),
            "bytes",
        ),
        **dict.fromkeys(
            (
                "flush_interval_commit_log",
                "flush_commit_log_thorough_interval",
                "flush_interval_consume_queue",
                "flush_consume_queue_thorough_interval",
                "clean_resource_interval",
                "delete_commit_log_files_interval",
                "delete_consume_queue_files_interval",
                "redelete_hanged_file_interval",
                "sync_flush_timeout",
                "slave_timeout",
                "ha_send_heartbeat_interval",
                "ha_housekeeping_interval",
                "os_page_cache_busy_time_out_mills",
                "flush_delay_offset_interval",
                "timer_precision_ms",
                "timer_flush_interval_ms",
                "disappear_time_after_start",
            ),
            "ms",
        ),
        **dict.fromkeys(
            (
                "disk_max_used_space_ratio",
                "disk_space_warning_level_ratio",
                "disk_space_clean_forcibly_ratio",
                "access_message_in_memory_max_ratio",
            ),
            "percent",
        ),
        "file_reserved_time": "hours",
        "timer_max_delay_sec": "seconds",
        "flush_commit_log_least_pages": "pages",
        "flush_consume_queue_least_pages": "pages",
        "flush_least_pages_when_warm_maped_file": "pages",
    }

    store_path_root_dir: str = attrs.field(factory=machine.store_root)
    store_path_commit_log: str | None = None
    store_path_d_ledger_commit_log: str | None = None
    store_path_epoch_file: str | None = None
    store_path_broker_identity: str | None = None
    read_only_commit_log_store_paths: str | None = None
    mapped_file_size_commit_log: int = 1073741824
    compaction_mapped_file_size: int = 104857600
    compaction_cq_mapped_file_size: int = 10485760
    compaction_schedule_internal: int = 900000
    max_offset_map_size: int = 104857600
    compaction_thread_num: int = 6
    enable_compaction: bool = True
    mapped_file_size_timer_log: int = 104857600
    timer_precision_ms: int = 1000
    timer_roll_window_slot: int = 172800
    timer_flush_interval_ms: int = running(1000)
    timer_get_message_thread_num: int = 3
    timer_put_message_thread_num: int = 3
    timer_enable_disruptor: bool = attrs.field(default=False, init=False)
    timer_enable_check_metrics: bool = True
    timer_intercept_delay_level: bool = running(False)
    timer_max_delay_sec: int = running(259200)
    timer_wheel_enable: bool = True
    disappear_time_after_start: int = -1
    timer_stop_enqueue: bool = running(False)
    timer_check_metrics_when: str = attrs.field(default="05", init=False)
    timer_skip_unknown_error: bool = False
    timer_warm_enable: bool = attrs.field(default=False, init=False)
    timer_stop_dequeue: bool = attrs.field(default=False, init=False)
    timer_enable_retry_until_success: bool = False
    timer_congest_num_each_slot: int = running(2147483647)
    timer_metric_small_threshold: int = 1000000
    timer_progress_log_interval_ms: int = 10000
    store_type: str = "default"
    mapped_file_size_consume_queue: int = 6000000
    enable_consume_queue_ext: bool = False
    mapped_file_size_consume_queue_ext: int = 50331648
    mapper_file_size_batch_consume_queue: int = 13800000
    bit_map_length_consume_queue_ext: int = 64
    flush_interval_commit_log: int = running(500)
    commit_interval_commit_log: int = 200
    max_recovery_commitlog_files: int = 30
    disk_space_warning_level_ratio: int = running(90)
    disk_space_clean_forcibly_ratio: int = running(85)
    disk_space_enough_bytes: int = running(10737418240)
    use_reentrant_lock_when_put_message: bool = True
    flush_commit_log_timed: bool = running(True)
    flush_interval_consume_queue: int = running(1000)
    clean_resource_interval: int = running(10000)
    delete_commit_log_files_interval: int = running(100)
    delete_consume_queue_files_interval: int = running(100)
    destroy_maped_file_interval_forcibly: int = 120000
    redelete_hanged_file_interval: int = running(120000)
    delete_when: str = running("04")
    disk_max_used_space_ratio: int = running(75)
    file_reserved_time: int = running(72)
    delete_file_batch_max: int = running(10)
    put_msg_index_hight_water: int = 600000
    max_message_size: int = running(4194304)
    max_filter_message_size: int = running(16000)
    check_crc_on_recover: bool = True
    flush_commit_log_least_pages: int = running(4)
    commit_commit_log_least_pages: int = 4
    flush_least_pages_when_warm_maped_file: int = running(4096)
    flush_consume_queue_least_pages: int = running(2)
    flush_commit_log_thorough_interval: int = running(10000)
    commit_commit_log_thorough_interval: int = 200
    flush_consume_queue_thorough_interval: int = running(60000)
    max_transfer_bytes_on_message_in_memory: int = running(262144)
    max_transfer_count_on_message_in_memory: int = running(32)
    max_transfer_bytes_on_message_in_disk: int = running(65536)
    max_transfer_count_on_message_in_disk: int = running(8)
    rocketbroker_max_pull_messages: int = running(0)
    rocketbroker_max_pull_bytes: int = running(8 << 20)
    rocketbroker_max_unflushed_bytes: int = running(1 << 30)
    access_message_in_memory_max_ratio: int = running(40)
    message_index_enable: bool = running(True)
    max_hash_slot_num: int = 5000000
    max_index_num: int = 20000000
    max_msgs_num_batch: int = running(64)
    message_index_safe: bool = False
    ha_listen_port: int = 10912
    ha_send_heartbeat_interval: int = 5000
    ha_housekeeping_interval: int = 20000
    ha_transfer_batch_size: int = 32768
    ha_master_address: str | None = None
    ha_trusted_addresses: str = running("")
    ha_serve_strangers: bool = running(True)
    ha_tls: bool = False
    ha_tls_required: bool = False
    ha_secret_file: str | None = None
    ha_max_gap_not_in_sync: int = 268435456
    broker_role: str = "ASYNC_MASTER"
    flush_disk_type: str = "ASYNC_FLUSH"
    sync_flush_timeout: int = running(5000)
    put_message_timeout: int = 8000
    slave_timeout: int = running(3000)
    message_delay_level: str = DELAY_LEVELS
    flush_delay_offset_interval: int = running(10000)
    clean_file_forcibly_enable: bool = running(True)
    warm_maped_file_enable: bool = running(False)
    offset_check_in_slave: bool = False
    debug_lock_enable: bool = False
    duplication_enable: bool = False
    disk_fall_recorded: bool = running(True)
    os_page_cache_busy_time_out_mills: int = running(1000)
    default_query_max_num: int = running(32)
    transient_store_pool_enable: bool = False
    transient_store_pool_size: int = 5
    fast_fail_if_no_buffer_in_store_pool: bool = False
    write_without_mmap: bool = False
    enable_d_leger_commit_log: bool = False
    d_leger_group: str | None = None
    d_leger_peers: str | None = None
    d_leger_self_id: str | None = None
    preferred_leader_id: str | None = None
    enable_batch_push: bool = False
    enable_schedule_message_stats: bool = True
    enable_lmq: bool = False
    enable_multi_dispatch: bool = False
    max_lmq_consume_queue_num: int = running(20000)
    enable_schedule_async_deliver: bool = False
    schedule_async_deliver_max_pending_limit: int = 2000
    schedule_async_deliver_max_resend_num2_blocked: int = 3
    max_batch_delete_files_num: int = 50
    dispatch_cq_threads: int = 10
    dispatch_cq_cache_num: int = 4096
    enable_async_reput: bool = True
    recheck_reput_offset_from_cq: bool = False
    max_topic_length: int = 127
    auto_message_version_on_topic_len: bool = True
    enable_running_flags_in_flush: bool = False
    enabled_append_prop_crc: bool = False
    force_verify_prop_crc: bool = False
    travel_cq_file_num_when_get_message: int = running(1)
    correct_logic_min_offset_sleep_interval: int = 1
    correct_logic_min_offset_force_interval: int = 300000
    mapped_file_swap_enable: bool = True
    commit_log_force_swap_map_interval: int = 43200000
    commit_log_swap_map_interval: int = 3600000
    commit_log_swap_map_reserve_file_num: int = 100
    logic_queue_force_swap_map_interval: int = 43200000
    logic_queue_swap_map_interval: int = 3600000
    clean_swaped_map_interval: int = 300000
    logic_queue_swap_map_reserve_file_num: int = 20
    search_bcq_by_cache_enable: bool = True
    dispatch_from_sender_thread: bool = False
    wake_commit_when_put_message: bool = True
    wake_flush_when_put_message: bool = running(False)
    enable_clean_expired_offset: bool = False
    max_async_put_message_requests: int = 5000
    pull_batch_max_message_count: int = 160
    total_replicas: int = running(1)
    in_sync_replicas: int = running(1)
    min_in_sync_replicas: int = running(1)
    all_ack_in_sync_state_set: bool = False
    enable_auto_in_sync_replicas: bool = running(False)
    ha_flow_control_enable: bool = False
    max_ha_transfer_byte_in_second: int = 104857600
    ha_max_time_slave_not_catchup: int = 15000
    sync_master_flush_offset_when_startup: bool = False
    max_checksum_range: int = 1073741824
    replicas_per_disk_partition: int = running(1)
    logical_disk_space_clean_forcibly_threshold: float = running(0.8)
    max_slave_resend_length: int = 268435456
    sync_from_last_file: bool = False
    async_learner: bool = False
    max_consume_queue_scan: int = 20000
    sample_count_threshold: int = 5000
    cold_data_flow_control_enable: bool = running(False)
    cold_data_scan_enable: bool = False
    data_read_ahead_enable: bool = running(True)
    timer_cold_data_check_interval_ms: int = 60000
    sample_steps: int = 32
    access_message_in_memory_hot_ratio: int = 26
    enable_build_consume_queue_concurrently: bool = False
    batch_dispatch_request_thread_pool_nums: int = 16
    clean_rocks_db_dirty_cq_interval_min: int = 60
    stat_rocks_dbcq_interval_sec: int = 10
    mem_table_flush_interval_ms: int = 3600000
    real_time_persist_rocks_db_config: bool = True
    enable_rocks_db_log: bool = False
    topic_queue_lock_num: int = 32
    read_un_committed: bool = False
    put_consume_queue_data_by_file_channel: bool = True
    rocksdb_cq_double_write_enable: bool = False
    combine_cq_loading_cq_types: str = "default;defaultRocksDB"
    combine_cq_prefer_cq_type: str = "default"
    combine_assign_offset_cq_type: str = "default"
    combine_cq_enable_check_self: bool = False
    combine_cq_max_extra_search_commit_log_files: int = 3
    bottom_most_compression_type_for_consume_queue_store: str = "zstd"
    rocksdb_compression_type: str = "lz4"
    rocksdb_flush_wal_frequency: int = 1024
    rocksdb_wal_file_rolling_threshold: int = 1073741824
    enable_accelerated_recovery: bool = False
    spin_lock_collision_retreat_optimal_degree: int = 1000
    use_abs_lock: bool = False
    enable_log_consume_queue_repeatedly_build_when_recover: bool = False

    @property
    def is_slave(self) -> bool:
        """Whether the log is a master's, and nothing else gets into it."""
        return self.broker_role == "SLAVE"
