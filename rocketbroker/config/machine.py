# -*- test-case-name: tests.config.test_machine -*-
"""Defaults that depend on the machine: its name, address, processors, environment."""

from __future__ import annotations

import os
import socket
from struct import pack
from typing import Final, NamedTuple

from rocketbroker.config.paths import resolved

#: An address of a network reserved for documentation: only the route to it is asked.
_ELSEWHERE: Final = ("192.0.2.1", 9)

#: Linux: asks for the address of an interface; its name goes in, 16 bytes at most, and
#: the address comes out, 4 bytes from the 20th on.
_GET_ADDRESS: Final = 0x8915

#: Linux: a line for each IPv6 address, which stands first, as 32 hexadecimal digits.
_IPV6_ADDRESSES: Final = "/proc/net/if_inet6"


def host_name() -> str:
    """The name of this machine, as a broker is called that was given no name."""
    return socket.gethostname() or "DEFAULT_BROKER"


def local_address() -> str:
    """The IPv4 address from which this machine would speak to others.

    Nothing is sent: connecting a datagram socket only chooses a route. A machine
    without any route is reachable at its loopback address alone.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


class Identity(NamedTuple):
    """Who this process is to others, which ids of clients and messages are made of.

    @ivar address: 4 or 16 bytes.
    @ivar process_id: of this process.
    @ivar token: a number by chance, which keeps those apart that share the rest.
    """

    address: bytes
    process_id: int
    token: int


def identity() -> Identity:
    """The address of the way out, the process, and a number by chance."""
    token = int.from_bytes(os.urandom(4), "big")
    return Identity(socket.inet_aton(local_address()), os.getpid(), token)


def ipv4_addresses() -> list[str]:
    """The IPv4 addresses of this machine, one for each interface.

    None where the system cannot be asked as Linux can.
    """
    try:
        import fcntl
    except ImportError:  # as on Windows
        return []
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                got = fcntl.ioctl(probe, _GET_ADDRESS, pack("256s", name.encode()[:15]))
            except OSError:  # it has none
                continue
            found.append(socket.inet_ntoa(got[20:24]))
    return found


def ipv6_addresses() -> list[str]:
    """The IPv6 addresses of this machine; none where the system does not list them as
    Linux does."""
    try:
        with open(_IPV6_ADDRESSES) as lines:
            packed = [bytes.fromhex(line.split()[0]) for line in lines]
    except OSError:
        return []
    return [socket.inet_ntop(socket.AF_INET6, each) for each in packed]


def processors() -> int:
    """How many processors there are, at least 1."""
    return os.cpu_count() or 1


def few_processors() -> int:
    """The same, but at most 4: RocketMQ's sending threads."""
    return min(processors(), 4)


def twice_and_16() -> int:
    """16 and 2 for each processor: RocketMQ's pulling threads."""
    return 16 + 2 * processors()


def eight_more() -> int:
    """8 and 1 for each processor: RocketMQ's querying threads."""
    return 8 + processors()


def at_most_32() -> int:
    """One for each processor up to 32: RocketMQ's heartbeat threads."""
    return min(32, processors())


def transaction_threads() -> int:
    """RocketMQ's threads for the end of transactions."""
    return max(8 + 2 * processors(), 4 * few_processors())


def under_home(*parts: str) -> str:
    """A path in the user's home directory."""
    return os.path.join(os.path.expanduser("~"), *parts)


def store_root() -> str:
    """Where a store is unless storePathRootDir says otherwise."""
    return under_home("store")


def rocketmq_home() -> str | None:
    """ROCKETMQ_HOME; nothing here needs it."""
    home = os.environ.get("ROCKETMQ_HOME")
    return None if home is None else resolved(home)


def name_servers() -> str | None:
    """NAMESRV_ADDR."""
    return os.environ.get("NAMESRV_ADDR")
