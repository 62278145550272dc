# -*- test-case-name: tests.client.test_settings -*-
"""The settings of a client, its producers and its consumers.

Names that Java's clients have, too, are told in C{docs/facts/client.md} 1, 4.1 and 19.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import attrs

from rocketbroker.auth.signatures import Credentials
from rocketbroker.client.observers import Observers, observers_of
from rocketbroker.config.addresses import name_server_list
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConfigurationError
from rocketbroker.records import compression, names
from rocketbroker.records.outgoing import MAX_BODY_BYTES
from rocketbroker.wire.frames import MAX_BYTES

if TYPE_CHECKING:
    from rocketbroker.routing.allocation import Strategy

#: Names name servers where the program names none.
NAME_SERVERS_VARIABLE: Final = "ROCKETMQ_NAMESRV"

#: Where a name server is if nobody says anything.
DEFAULT_NAME_SERVER: Final = "127.0.0.1:9876"

#: The strategies that brokers know.
BROKERS_STRATEGIES: Final = ("AVG", "AVG_BY_CIRCLE")

#: Names of L{compression}'s kinds.
COMPRESSIONS: Final = {
    "zlib": compression.ZLIB,
    "lz4": compression.LZ4,
    "zstd": compression.ZSTD,
}


def name_servers(
    given: str | Iterable[str] | None, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """The addresses of name servers.

    @param given: see L{name_server_list}. None: as the environment says, or the usual
        address of this machine.
    @raise ConfigurationError: there is none, or one is not an address.
    """
    if given is None:
        given = environment.get(NAME_SERVERS_VARIABLE) or DEFAULT_NAME_SERVER
    return name_server_list(given)


def _positive(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ConfigurationError(
            f"{attribute.name} has to be a number above 0, not {value!r}"
        )


def _count(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigurationError(
            f"{attribute.name} has to be a whole number, 0 or more, not {value!r}"
        )


def _truth(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if not isinstance(value, bool):
        raise ConfigurationError(
            f"{attribute.name} has to be True or False, not {value!r}"
        )


def _text(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise ConfigurationError(f"{attribute.name} has to be a text, not {value!r}")


def _attempts(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None:
        _count(instance, attribute, value)


def _seconds_since_1970(start: object) -> object:
    return start.timestamp() if isinstance(start, datetime) else start


def _group(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    problem = f"{value!r} is no text"
    if isinstance(value, str):
        problem = names.group_problem(value) or ("" if value else "it is empty")
    if problem:
        raise ConfigurationError(f"the name of a group cannot be used: {problem}")


def _namespace(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and (
        not isinstance(value, str)
        or (value and names.has_illegal_characters(value))
        or names.NAMESPACE_SEPARATOR in value
    ):
        raise ConfigurationError(
            f"a namespace has letters, digits, - and _, and is not {value!r}"
        )


def _compression(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value not in COMPRESSIONS:
        raise ConfigurationError(
            f"compress is one of {', '.join(COMPRESSIONS)}, not {value!r}"
        )


def _trace(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if isinstance(value, bool):
        return
    problem = f"{value!r} is no topic"
    if isinstance(value, str):
        problem = names.topic_problem(value) or ""
    if problem:
        raise ConfigurationError(f"trace is true, false or a topic: {problem}")


@attrs.frozen(kw_only=True)
class ClientSettings:
    """The settings of a client.

    @ivar name_servers: see L{name_servers}.
    @ivar seconds: how long a request may take.
    @ivar patience: for how long a send or a start rides over servers that are away.
    @ivar route_seconds: how often routes are asked for again.
    @ivar heartbeat_seconds: how often brokers hear that we are there.
    @ivar instance_name: the second part of the client id; made up unless given.
    @ivar unit_name: the third part of the client id, if there is one.
    @ivar max_frame_bytes: the longest frame that is sent or taken.
    @ivar namespace: in which its topics and groups are: brokers know them as
        C{namespace%topic}. None: as the address of the name server says, if that is
        one like C{MQ_INST_xxx_yyy.domain:port}.
    @ivar namespace_v2: the same by a field of each request, which leaves names as they
        are.
    @ivar unit_mode: brokers mark topics and groups of which this is said.
    @ivar heartbeat_v2: heartbeats that leave out what the broker has kept
        (useHeartbeatV2); brokers of RocketMQ 5.
    @ivar observers: what is told of sends and of what becomes of messages.
    @ivar trace: whether message traces are sent; or their topic, if not RocketMQ's.
    @ivar tls: whether servers are spoken to by TLS (useTLS).
    @ivar tls_verify: whether their certificates must be signed by somebody who is
        trusted; false: those that they make themselves will do, and whoever sits
        between may show another.
    @ivar tls_ca: who that is: a file in PEM (tls.client.trustCertPath). None: whom the
        system trusts; then a certificate must be for the server's name, too.
    @ivar tls_certificate: what we show, in PEM (tls.client.certPath).
    @ivar tls_key: its key, in PEM (tls.client.keyPath).
    @ivar tls_key_password: of that (tls.client.keyPassword).
    @ivar access_key: the account or user for whom requests are signed
        (AclClientRPCHook).
    @ivar secret_key: its secret, or the user's password.
    @ivar security_token: a token that some services want, too.
    """

    name_servers: tuple[str, ...] = (DEFAULT_NAME_SERVER,)
    seconds: float = attrs.field(default=3.0, validator=_positive)
    patience: float = attrs.field(default=120.0, validator=_positive)
    route_seconds: float = attrs.field(default=30.0, validator=_positive)
    heartbeat_seconds: float = attrs.field(default=30.0, validator=_positive)
    instance_name: str | None = attrs.field(default=None, validator=_text)
    unit_name: str | None = attrs.field(default=None, validator=_text)
    max_frame_bytes: int = attrs.field(default=MAX_BYTES, validator=_positive)
    namespace: str | None = attrs.field(default=None, validator=_namespace)
    namespace_v2: str | None = attrs.field(default=None, validator=_namespace)
    unit_mode: bool = False
    heartbeat_v2: bool = False
    observers: Observers | None = attrs.field(default=None, converter=observers_of)
    trace: bool | str = attrs.field(default=False, validator=_trace)
    tls: bool = attrs.field(default=False, validator=_truth)
    tls_verify: bool = attrs.field(default=True, validator=_truth)
    tls_ca: str | None = attrs.field(default=None, validator=_text)
    tls_certificate: str | None = attrs.field(default=None, validator=_text)
    tls_key: str | None = attrs.field(default=None, validator=_text)
    tls_key_password: str | None = attrs.field(
        default=None, validator=_text, repr=False
    )

    access_key: str | None = attrs.field(default=None, validator=_text)
    secret_key: str | None = attrs.field(default=None, validator=_text, repr=False)
    security_token: str | None = attrs.field(default=None, validator=_text, repr=False)

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot work, before anybody connects.

        @raise ConfigurationError: settings of TLS without it, a file that is not in
            order, or one key without the other.
        """
        if bool(self.access_key) != bool(self.secret_key):
            raise ConfigurationError("access_key and secret_key go together")
        given = (self.tls_ca, self.tls_certificate, self.tls_key)
        if not self.tls and (any(given) or not self.tls_verify):
            raise ConfigurationError("settings of TLS go with tls=True")
        tls = self.tls_terms()
        if tls is not None:
            tls.context()

    def credentials(self) -> Credentials | None:
        """What requests are signed with; C{None}: they are not."""
        if not self.access_key or not self.secret_key:
            return None
        return Credentials(self.access_key, self.secret_key, self.security_token)

    def tls_terms(self) -> ClientTls | None:
        """How TLS is spoken; C{None}: it is not."""
        if not self.tls:
            return None
        return ClientTls(
            verify=self.tls_verify,
            ca_path=self.tls_ca or "",
            certificate_path=self.tls_certificate or "",
            key_path=self.tls_key or "",
            key_password=self.tls_key_password or "",
        )


@attrs.frozen(kw_only=True)
class ProducerSettings:
    """The settings of a producer.

    @ivar group: in whose name it sends; transactions are checked by group.
    @ivar attempts: how often a send is tried that a broker refuses for now.
    @ivar compress_over: bodies of this many bytes or more are compressed.
    @ivar compress: by which algorithm: C{"zlib"}, C{"lz4"} or C{"zstd"}.
    @ivar compress_level: how thoroughly; what a level means is the
        algorithm's.
    @ivar max_body_bytes: longer bodies are refused.
    @ivar batch_bytes: how many bytes of messages one batch has at most.
    @ivar avoid_slow: brokers that were slow or failed are avoided for a while
        (sendLatencyEnable).
    @ivar detector: with C{avoid_slow}: brokers that could not be reached are asked
        whether they are there again.
    @ivar detect_seconds: how long such an answer may take.
    @ivar detect_interval: seconds between two questions to a broker.
    @ivar accumulate: gather messages that are sent one by one into batches.
    @ivar accumulate_seconds: for how long.
    @ivar accumulate_bytes: how many bytes one of these batches has.
    @ivar accumulate_total_bytes: how many bytes may be gathered and not stored yet;
        beyond them messages go alone.
    @ivar max_sends: how many requests may be under way; more sends wait, as long as
        they have time.
    @ivar max_send_bytes: how many bytes they may have together.
    @ivar retry_unsafe: try another broker when a message is stored, but not as safely
        as the broker is set up to (retryAnotherBrokerWhenNotStoreOK).
    """

    group: str = attrs.field(default=names.INNER_PRODUCER, validator=_group)
    attempts: int = attrs.field(default=3, validator=_positive)
    compress_over: int = attrs.field(default=4096, validator=_count)
    compress: str = attrs.field(default="zlib", validator=_compression)
    compress_level: int = attrs.field(
        default=compression.DEFAULT_LEVEL, validator=_count
    )
    max_body_bytes: int = attrs.field(default=MAX_BODY_BYTES, validator=_positive)
    batch_bytes: int = attrs.field(default=256 * 1024, validator=_positive)
    avoid_slow: bool = attrs.field(default=False, validator=_truth)
    detector: bool = attrs.field(default=False, validator=_truth)
    detect_seconds: float = attrs.field(default=0.2, validator=_positive)
    detect_interval: float = attrs.field(default=2.0, validator=_positive)
    accumulate: bool = attrs.field(default=False, validator=_truth)
    accumulate_seconds: float = attrs.field(default=0.01, validator=_positive)
    accumulate_bytes: int = attrs.field(default=32 * 1024, validator=_positive)
    accumulate_total_bytes: int = attrs.field(default=32 << 20, validator=_positive)
    max_sends: int = attrs.field(default=1024, validator=_positive)
    max_send_bytes: int = attrs.field(default=100 << 20, validator=_positive)
    retry_unsafe: bool = attrs.field(default=False, validator=_truth)

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot work.

        @raise ConfigurationError: the settings contradict one another.
        """
        if self.detector and not self.avoid_slow:
            raise ConfigurationError("detector=True goes with avoid_slow=True")


@attrs.frozen(kw_only=True)
class ConsumerSettings:
    """The settings of a consumer.

    @ivar group: whose member it is.
    @ivar ordered: one message of a queue at a time, the next after it is acknowledged;
        queues are locked at the broker.
    @ivar broadcast: every member gets every message; offsets are kept in a file.
    @ivar mode: C{"classic"}: members share the queues; C{"pop"}: brokers share out the
        messages; C{"lite"}: see L{rocketbroker.client.lite_pull}.
    @ivar invisible_seconds: with C{"pop"}: how long a message belongs to the member
        that has it.
    @ivar start: where a group without offsets begins: C{"latest"}, C{"earliest"}, or
        a time: a C{datetime}, or seconds since 1970.
    @ivar strategy: how the members share the queues, the same for all of them: a name,
        a strategy, or any function of queues, members and member;
        L{rocketbroker.routing.allocation}.
    @ivar assignment: who says which queues are a member's: C{"client"}: the members, by
        the strategy; C{"broker"}: brokers, by C{"AVG"} or C{"AVG_BY_CIRCLE"}, which
        also say whether the group pulls or pops (clientRebalance).
    @ivar prefetch: how many messages of a queue wait for the user at most.
    @ivar prefetch_bytes: how many bytes of messages of a queue wait for the user at
        most.
    @ivar max_unacknowledged: how many messages of a queue may be unacknowledged.
    @ivar max_span: how far the offsets of the first and the last of them may be apart.
    @ivar consume_timeout: seconds after which a message that was given out and is not
        acknowledged is sent back.
    @ivar max_attempts: how often a message is sent back before it is a dead letter;
        None for the usual 16, and without end if ordered.
    @ivar pull_batch: how many messages one request asks for.
    @ivar pull_bytes: how many bytes of messages one request asks for.
    @ivar hold_seconds: how long a broker may wait for a message.
    @ivar commit_seconds: how often offsets are committed.
    @ivar rebalance_seconds: how often the queues are shared out anew.
    @ivar suspend_seconds: how long an ordered queue rests after C{retry()}.
    @ivar offset_folder: where the offsets of broadcasting consumers are kept; None for
        Java's place in the home directory.
    """

    group: str = attrs.field(validator=_group)
    ordered: bool = attrs.field(default=False, validator=_truth)
    broadcast: bool = attrs.field(default=False, validator=_truth)
    mode: str = "classic"
    invisible_seconds: float = attrs.field(default=60.0, validator=_positive)
    start: str | float = attrs.field(default="latest", converter=_seconds_since_1970)
    strategy: str | Strategy = "AVG"
    assignment: str = "client"
    prefetch: int = attrs.field(default=32, validator=_positive)
    prefetch_bytes: int = attrs.field(default=4 << 20, validator=_positive)
    max_unacknowledged: int = attrs.field(default=1000, validator=_positive)
    max_span: int = attrs.field(default=2000, validator=_positive)
    consume_timeout: float = attrs.field(default=900.0, validator=_positive)
    max_attempts: int | None = attrs.field(default=None, validator=_attempts)
    pull_batch: int = attrs.field(default=32, validator=_positive)
    pull_bytes: int = attrs.field(default=256 * 1024, validator=_positive)
    hold_seconds: float = attrs.field(default=15.0, validator=_positive)
    commit_seconds: float = attrs.field(default=5.0, validator=_positive)
    rebalance_seconds: float = attrs.field(default=20.0, validator=_positive)
    suspend_seconds: float = attrs.field(default=1.0, validator=_positive)
    offset_folder: str | None = attrs.field(default=None, validator=_text)

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot work.

        @raise ConfigurationError: the settings contradict one another.
        """
        if self.start not in ("latest", "earliest") and not (
            isinstance(self.start, int | float)
            and not isinstance(self.start, bool)
            and self.start >= 0
        ):
            raise ConfigurationError(
                "a consumer starts at 'latest', 'earliest' or a time, "
                f"not at {self.start!r}"
            )
        if self.mode not in ("classic", "pop", "lite"):
            raise ConfigurationError(
                f"the mode of a consumer is 'classic' or 'pop', not {self.mode!r}"
            )
        if self.mode != "classic" and (self.ordered or self.broadcast):
            raise ConfigurationError(
                "only a consumer of mode 'classic' can be ordered or broadcast"
            )
        if self.assignment not in ("client", "broker"):
            raise ConfigurationError(
                f"queues are assigned by 'client' or 'broker', not {self.assignment!r}"
            )
        if self.assignment == "broker" and (
            self.mode != "classic" or self.ordered or self.broadcast
        ):
            raise ConfigurationError(
                "brokers assign no queues to consumers that are ordered, broadcast, "
                "poll, or pop by themselves; leave out assignment='broker'"
            )
        if self.assignment == "broker" and self.strategy not in BROKERS_STRATEGIES:
            raise ConfigurationError(
                f"brokers know the strategies {', '.join(BROKERS_STRATEGIES)}; "
                f"{self.strategy!r} goes with assignment='client'"
            )
        if self.ordered and self.broadcast:
            raise ConfigurationError(
                "a consumer is ordered or broadcasting, not both: who gets every "
                "message shares no queues"
            )

    @property
    def attempts_allowed(self) -> int:
        """How often a message may be sent back, as requests carry it."""
        if self.max_attempts is not None:
            return self.max_attempts
        return 2**31 - 1 if self.ordered else 16
