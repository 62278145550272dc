# -*- test-case-name: tests.proxy.test_access -*-
"""Access control of ACL 2.0 before calls: who makes them, and whether they may.

Headers say who it is and are signed (L{rocketbroker.auth.grpc_signatures}); the users
and their policies are the brokers', which tell them to the user of the proxy. Whoever
is refused hears so in RocketMQ's words, as UNAUTHORIZED; whoever cannot be looked up
hears that, and is not taken for somebody unknown. C{docs/facts/proxy.md} 14.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar, final

from rocketbroker.auth.decision import Decision
from rocketbroker.auth.entries import Acl
from rocketbroker.auth.grpc_signatures import (
    AUTHORIZATION,
    DATE_TIME,
    SignedCall,
    parse,
)
from rocketbroker.auth.policies import PolicySettings, Rules, request_list
from rocketbroker.auth.policy_documents import acl_from, user_from
from rocketbroker.auth.users import SUBJECT_PREFIX, Documents, User, UserType
from rocketbroker.auth.wanted import Release, Wants
from rocketbroker.auth.wanted_by_calls import full_name, wanted
from rocketbroker.client.runtime import Runtime
from rocketbroker.errors import NoPermission, RocketbrokerError
from rocketbroker.proxy.brokers import METADATA_SECONDS, Brokers
from rocketbroker.proxy.lookups import LookupLimits, Lookups
from rocketbroker.proxy.messages_pb2 import Code
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.proxy.statuses import Refusal, status_of
from rocketbroker.wire import fastjson
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command

T = TypeVar("T")

_log: Final = logging.getLogger("rocketbroker.proxy")

#: What brokers answer who are asked for the policies of nobody: of a user that has
#: been removed since, or never was.
NOBODY: Final = "The subject is not exist."

#: A failed lookup is told in the log this often at most.
COMPLAIN_SECONDS: Final = 60.0


def policy_settings(settings: ProxySettings) -> PolicySettings:
    """What the settings of a proxy say of the rules."""
    return PolicySettings(
        release=Release(settings.rocketbroker_auth_release),
        cluster=settings.rocket_mq_cluster_name,
        authentication=settings.authentication_enabled,
        authorization=settings.authorization_enabled,
        unauthenticated=request_list(settings.authentication_whitelist),
        unauthorized=request_list(settings.authorization_whitelist),
    )


class _Ruled(NamedTuple):
    """The rules of a user, and what they were made of."""

    user: User | None
    acl: Acl | None
    rules: Rules


@final
class Access:
    """Who may do what.

    @ivar users: the users that are known here.
    @ivar acls: their policies.
    """

    def __init__(
        self, runtime: Runtime, brokers: Brokers, settings: ProxySettings
    ) -> None:
        self._runtime = runtime
        self._brokers = brokers
        self._settings = policy_settings(settings)
        self._max_ruled = max(settings.user_cache_max_num, settings.acl_cache_max_num)
        self._ruled: dict[str, _Ruled] = {}
        self._complained_at: float | None = None
        self.users: Lookups[User | None] = Lookups(
            runtime,
            self._ask_user,
            LookupLimits(
                refresh_seconds=settings.user_cache_refresh_seconds,
                expired_seconds=settings.user_cache_expired_seconds,
                max_number=settings.user_cache_max_num,
            ),
        )
        self.acls: Lookups[Acl | None] = Lookups(
            runtime,
            self._ask_acl,
            LookupLimits(
                refresh_seconds=settings.acl_cache_refresh_seconds,
                expired_seconds=settings.acl_cache_expired_seconds,
                max_number=settings.acl_cache_max_num,
            ),
        )

    async def check(self, headers: Mapping[str, Any], message: Any, peer: str) -> None:
        """Let a call go on.

        @param headers: of the call, by names in small letters.
        @param message: of the call, or one of those of a stream.
        @param peer: where the client is, C{ip:port}.
        @raise Refusal: it may not, or that cannot be found out now.
        """
        try:
            refused = await self._refused(headers, message, peer)
        except NoPermission as problem:
            raise Refusal(Code.UNAUTHORIZED, str(problem)) from None
        if refused is not None:
            raise Refusal(Code.UNAUTHORIZED, refused.remark)

    async def _refused(
        self, headers: Mapping[str, Any], message: Any, peer: str
    ) -> Decision | None:
        """The decision that refuses a call; C{None}: none does.

        @raise NoPermission: its headers or its message cannot be read.
        """
        name = full_name(message)
        call = SignedCall()
        if self._settings.authentication:
            call = parse(headers.get(AUTHORIZATION), headers.get(DATE_TIME))
            decision = await self._authenticated(name, call)
            if not decision.allowed:
                return decision
        if self._settings.authorization and name not in self._settings.unauthorized:
            wants = wanted(message)
            source = peer.rpartition(":")[0].strip("[]")
            if wants:
                decision = await self._authorized(name, call, wants, source)
                return None if decision.allowed else decision
        return None

    async def _authenticated(self, name: str, call: SignedCall) -> Decision:
        users = {}
        key = call.access_key
        if key and name not in self._settings.unauthenticated:
            user = await self._looked_up(self.users, key)
            if user is not None:
                users[key] = user
        rules = Rules(Documents(users), self._settings)
        return rules.authenticate_call(name, call)

    async def _authorized(
        self, name: str, call: SignedCall, wants: Wants, source: str
    ) -> Decision:
        user = acl = None
        key = call.access_key or ""
        if key:
            user = await self._looked_up(self.users, key)
            if user is not None and user.type is not UserType.SUPER:
                acl = await self._looked_up(self.acls, key)
        rules = self._rules(key, user, acl)
        return rules.authorize_call(name, call.access_key, wants, source)

    def _rules(self, name: str, user: User | None, acl: Acl | None) -> Rules:
        """The rules of a user, the same for as long as nothing has changed: they keep
        their decisions."""
        known = self._ruled.get(name)
        if known is not None and (known.user, known.acl) == (user, acl):
            return known.rules
        documents = Documents(
            {} if user is None else {name: user}, {} if acl is None else {name: acl}
        )
        rules = Rules(documents, self._settings)
        self._ruled.pop(name, None)
        self._ruled[name] = _Ruled(user, acl, rules)
        if len(self._ruled) > self._max_ruled:
            del self._ruled[next(iter(self._ruled))]
        return rules

    # What brokers know.

    async def _looked_up(self, lookups: Lookups[T], name: str) -> T:
        """
        @raise Refusal: no broker tells it now.
        """
        try:
            return await lookups.get(name)
        except RocketbrokerError as problem:
            code = status_of(problem).code
            if code != Code.PROXY_TIMEOUT:
                code = Code.INTERNAL_SERVER_ERROR
            words = f"The proxy cannot look up its users now: {problem}"
            raise Refusal(code, words) from None

    async def _ask_user(self, name: str) -> User | None:
        return await self._ask(RequestCode.AUTH_GET_USER, {"username": name}, user_from)

    async def _ask_acl(self, name: str) -> Acl | None:
        fields = {"subject": SUBJECT_PREFIX + name}
        try:
            found = await self._ask(RequestCode.AUTH_GET_ACL, fields, acl_from)
        except NoPermission as problem:
            if str(problem) != NOBODY:
                raise
            return None
        return None if found is None else found[1]

    async def _ask(
        self, code: RequestCode, fields: dict[str, str], read: Callable[[object], T]
    ) -> T | None:
        """What a broker answers; what goes wrong is told in the log, too."""
        try:
            address = await self._brokers.leader()
            command = Command(code, fields)
            answer = await self._brokers.ask(address, command, METADATA_SECONDS)
            return read(fastjson.loads(answer.body)) if answer.body else None
        except RocketbrokerError as problem:
            if str(problem) != NOBODY:
                self._complain(problem)
            raise

    def _complain(self, problem: RocketbrokerError) -> None:
        now = self._runtime.monotonic()
        last = self._complained_at
        if last is None or now - last >= COMPLAIN_SECONDS:
            self._complained_at = now
            _log.warning("Users of gRPC cannot be looked up: %s", problem)

    async def close(self) -> None:
        """End what is under way."""
        await self.users.close()
        await self.acls.close()
