# -*- test-case-name: tests.config.test_remoting -*-
"""The settings of ports and connections: C{docs/facts/broker.md 25.3} and C{25.4}.

RocketMQ sizes thread pools and semaphores with most of them; here they are known and
printed, and only those in C{ABOUT} do something.
"""

from __future__ import annotations

from typing import ClassVar, Final

import attrs

from rocketbroker.config import machine
from rocketbroker.config.addresses import (
    LOOPBACK_NETWORKS,
    check_interface,
    networks,
)
from rocketbroker.config.keyed import LONG, PORT, POSITIVE, KeyedOptions, running

#: The budget of memory for what waits in all connections of a server.
MAX_BUFFERED_BYTES: Final = 128 << 20

#: The least: one of the longest frames, and as much for answers.
_LEAST_BUFFERED_BYTES: Final = 32 << 20


@attrs.frozen(kw_only=True, eq=False)
class RemotingServerOptions(KeyedOptions):
    """How a server listens."""

    BOUNDS: ClassVar = {
        "listen_port": PORT,
        "server_channel_max_idle_time_seconds": POSITIVE,
        "server_socket_backlog": POSITIVE,
        "rocketbroker_max_buffered_bytes": (_LEAST_BUFFERED_BYTES, LONG[1]),
    }
    ABOUT: ClassVar = {
        "bind_address": "the address to listen on",
        "listen_port": "the port to listen on, 0 for any free one",
        "server_channel_max_idle_time_seconds": "idle connections are closed after it",
        "server_socket_snd_buf_size": "send buffer of a connection; 0: the system's",
        "server_socket_rcv_buf_size": "receive buffer of a connection; 0: the system's",
        "write_buffer_high_water_mark": "a peer that lets more wait is not read",
        "write_buffer_low_water_mark": "under it the peer is read again",
        "server_socket_backlog": "connections that wait to be accepted",
        "server_async_semaphore_value": "requests waiting for one client, min. 4096",
        "rocketbroker_max_buffered_bytes": "memory for unfinished requests and unread "
        "answers of all connections; beyond it they are read no further (ours)",
        "rocketbroker_proxy_protocol_from": "addresses and networks of proxies that "
        "may say, by the PROXY protocol, for whom they speak (ours)",
    }
    CHECKS: ClassVar = {
        "bind_address": check_interface,
        "rocketbroker_proxy_protocol_from": networks,
    }
    UNITS: ClassVar = {
        "server_channel_max_idle_time_seconds": "s",
        "server_socket_snd_buf_size": "bytes",
        "server_socket_rcv_buf_size": "bytes",
        "write_buffer_high_water_mark": "bytes",
        "write_buffer_low_water_mark": "bytes",
        "rocketbroker_max_buffered_bytes": "bytes",
    }

    bind_address: str = "0.0.0.0"
    listen_port: int = 0
    server_worker_threads: int = 8
    server_callback_executor_threads: int = 0
    server_selector_threads: int = 3
    server_oneway_semaphore_value: int = 256
    server_async_semaphore_value: int = 64
    server_channel_max_idle_time_seconds: int = 120
    server_socket_snd_buf_size: int = 0
    server_socket_rcv_buf_size: int = 0
    write_buffer_high_water_mark: int = 0
    write_buffer_low_water_mark: int = 0
    server_socket_backlog: int = 1024
    server_netty_worker_group_enable: bool = True
    server_pooled_byte_buf_allocator_enable: bool = True
    enable_shutdown_gracefully: bool = False
    shutdown_wait_time_seconds: int = 30
    use_epoll_native_selector: bool = False
    rocketbroker_max_buffered_bytes: int = MAX_BUFFERED_BYTES
    rocketbroker_proxy_protocol_from: str = running(LOOPBACK_NETWORKS)


@attrs.frozen(kw_only=True, eq=False)
class RemotingClientOptions(KeyedOptions):
    """How a server speaks to name servers and brokers."""

    IRREGULAR: ClassVar = {"use_tls": "useTLS"}
    BOUNDS: ClassVar = {
        "connect_timeout_millis": POSITIVE,
        "channel_not_active_interval": LONG,
        "client_channel_max_idle_time_seconds": POSITIVE,
        "max_reconnect_interval_time_seconds": LONG,
    }
    ABOUT: ClassVar = {
        "use_tls": "speak TLS with them, as tls.enable does",
        "client_async_semaphore_value": "most requests without an answer",
        "connect_timeout_millis": "how long to wait for a connection",
        "client_channel_max_idle_time_seconds": "idle connections are closed after it",
        "write_buffer_high_water_mark": "a peer that lets more wait is not read",
        "write_buffer_low_water_mark": "under it the peer is read again",
    }
    UNITS: ClassVar = {
        "connect_timeout_millis": "ms",
        "client_channel_max_idle_time_seconds": "s",
        "write_buffer_high_water_mark": "bytes",
        "write_buffer_low_water_mark": "bytes",
    }

    client_worker_threads: int = 4
    client_callback_executor_threads: int = attrs.field(factory=machine.processors)
    client_oneway_semaphore_value: int = 65535
    client_async_semaphore_value: int = 65535
    connect_timeout_millis: int = 3000
    channel_not_active_interval: int = 60000
    scan_available_name_srv: bool = True
    client_channel_max_idle_time_seconds: int = 120
    client_socket_snd_buf_size: int = 0
    client_socket_rcv_buf_size: int = 0
    client_pooled_byte_buf_allocator_enable: bool = False
    client_close_socket_if_timeout: bool = True
    use_tls: bool = False
    socks_proxy_config: str = "{}"
    write_buffer_high_water_mark: int = 0
    write_buffer_low_water_mark: int = 0
    disable_callback_executor: bool = False
    disable_netty_worker_group: bool = False
    max_reconnect_interval_time_seconds: int = 60
    enable_reconnect_for_go_away: bool = True
