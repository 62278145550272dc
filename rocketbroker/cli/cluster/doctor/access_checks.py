# -*- test-case-name: tests.cli.cluster.doctor.test_access_checks -*-
"""The access checks of C{rocketbroker doctor}: what is open, and which certificates.

Servers are asked without TLS and without an account, whatever we are told to use: an
answer says more than settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.doctor.certificates import Certificate, certificate_of
from rocketbroker.cli.cluster.doctor.finding import OK, PROBLEM, WARNING, Finding
from rocketbroker.cli.formats import Moment, Span
from rocketbroker.config.addresses import split_address
from rocketbroker.errors import BrokerError, RocketbrokerError
from rocketbroker.wire.codes import RequestCode

#: Whoever renews certificates by hand wants to know it so long before.
SOON_MS: Final = 30 * 24 * 3_600_000

NO_TLS: Final = (
    "answer without TLS: whoever is on the way reads messages, and may change them "
    "(tls.server.mode=enforcing; docs/security.rst)"
)
NO_ACCOUNT: Final = (
    "do what anybody asks, without an account (authenticationEnabled and "
    "authorizationEnabled, or aclEnable; docs/security.rst)"
)


@attrs.frozen
class Server:
    """A server, and what it does for strangers.

    @ivar name: in words.
    @ivar is_plain: whether it answers without TLS.
    @ivar is_open: whether a broker does what is asked without an account.
    """

    name: str
    address: str
    is_plain: bool
    is_open: bool


def of_access(cluster: Cluster) -> Iterator[Finding]:
    """What is open, and whether certificates are in order."""
    servers = [*_servers(cluster)]
    yield from _open([each for each in servers if each.is_plain], NO_TLS)
    yield from _open([each for each in servers if each.is_open], NO_ACCOUNT)
    for server in servers:
        yield from of_certificate(cluster, server)


def _servers(cluster: Cluster) -> Iterator[Server]:
    """The name servers and brokers."""
    settings = attrs.evolve(cluster.client.settings, credentials=None)
    plain = attrs.evolve(settings, tls=None)
    for address in cluster.name_servers:
        answer = answers(plain, address, RequestCode.GET_BROKER_CLUSTER_INFO)
        yield Server(f"name server {address}", address, answer is not None, False)
    try:
        brokers = cluster.brokers()
    except RocketbrokerError:
        return
    for broker in brokers:
        code = RequestCode.GET_BROKER_RUNTIME_INFO
        answer = answers(plain, broker.address, code)
        is_open = answer
        if answer is None and settings.tls is not None:
            is_open = answers(settings, broker.address, code)
        name = f"{broker.name} {broker.address}"
        yield Server(name, broker.address, answer is not None, bool(is_open))


def answers(settings: Settings, address: str, code: RequestCode) -> bool | None:
    """Whether a server does what it is asked; C{None}: it does not answer so."""
    with Client(settings) as client:
        try:
            client.ask_server(address, code)
        except BrokerError:
            return False
        except RocketbrokerError:
            return None
    return True


def _open(servers: Sequence[Server], words: str) -> Iterator[Finding]:
    """One finding for all of them; what only its own machine reaches is in order."""
    if servers:
        is_local = all(is_loopback(server.address) for server in servers)
        names = ", ".join(server.name for server in servers)
        yield Finding(OK if is_local else WARNING, "access", f"{names}: {words}")


def is_loopback(address: str) -> bool:
    """Whether an address with its port is of the own machine."""
    return address.startswith(("127.", "localhost:", "[::1]", "[0:0:0:0:0:0:0:1]"))


def of_certificate(cluster: Cluster, server: Server) -> Iterator[Finding]:
    """Whether what a server shows is valid, and says who the server is."""
    settings = cluster.client.settings
    host, port = split_address(server.address)
    machine = settings.machine
    try:
        found = certificate_of(machine, host, port, settings.seconds)
    except RocketbrokerError as error:
        yield Finding(WARNING, server.name, str(error))
        return
    if found is not None:
        is_checked = settings.tls is not None and settings.tls.verify
        is_wanted = not server.is_plain or settings.tls is not None
        now_ms = machine.wall_ms()
        yield from judged(server.name, found, now_ms, is_checked, is_wanted)


def judged(
    what: str, found: Certificate, now_ms: int, is_checked: bool, is_wanted: bool
) -> Iterator[Finding]:
    """What there is to say of a certificate.

    @param is_checked: whether we trust whoever has signed it.
    @param is_wanted: whether TLS is used there, as far as we know.
    """
    left = found.ends_ms - now_ms
    if left <= 0:
        words = f"its certificate has expired {Span(-left)} ago: renew it"
        yield Finding(PROBLEM, what, words)
    elif left <= SOON_MS:
        words = f"its certificate expires in {Span(left)}: renew it"
        yield Finding(WARNING, what, words)
    elif not is_wanted:
        return
    elif found.is_own and not is_checked:
        words = (
            "nobody has signed its certificate, so others may show one like it: name "
            "one (tls.server.certPath), and let clients check it (--tls-ca)"
        )
        yield Finding(WARNING, what, words)
    else:
        words = f"its certificate is valid until {Moment(found.ends_ms)}"
        yield Finding(OK, what, words)
