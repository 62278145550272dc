# -*- test-case-name: tests.auth.test_policies -*-
"""Rules of ACL 2.0: users, their signatures, and their policies.

Two questions, each of which a setting may switch off: is it the user (authentication),
and may the user do that (authorization). RocketMQ asks them in this order, and answers
a refusal with code 16 (C{docs/facts/security-metrics.md} 3.2 to 3.6).

Rules are made once for the documents as they are, and never change. Decisions are kept
by user, request and address: a send costs a look-up and its signature.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, final

import attrs

from rocketbroker.auth.decision import Decision, may_be_kept
from rocketbroker.auth.entries import Acl, Entry, PolicyType, UnknownSource
from rocketbroker.auth.grpc_signatures import SignedCall
from rocketbroker.auth.grpc_signatures import verify as verify_call
from rocketbroker.auth.order import first
from rocketbroker.auth.request import Asked
from rocketbroker.auth.signatures import unsigned_fields, verify
from rocketbroker.auth.users import (
    SUBJECT_PREFIX,
    Documents,
    User,
    UserStatus,
    UserType,
)
from rocketbroker.auth.wanted import DEPENDS_ON, Release, Want, Wants, wanted
from rocketbroker.errors import RemoteProtocolError

#: How many decisions are kept; RocketMQ's stateful strategy keeps as many.
MAX_KEPT: Final = 10_000

_FAILED: Final = "Authorization failed. Please verify your access rights and try again."

_ALL_ALLOWED: Final = Decision.allow("the request needs no permission")


@attrs.frozen(kw_only=True)
class PolicySettings:
    """What settings say of the rules.

    @ivar release: whose order of entries holds.
    @ivar cluster: the broker's cluster.
    @ivar authentication: whether signatures are checked.
    @ivar authorization: whether policies are.
    @ivar unauthenticated: requests whose signatures are not checked: codes as text,
        or full names of gRPC messages.
    @ivar unauthorized: requests that need no policy.
    """

    release: Release
    cluster: str
    authentication: bool = True
    authorization: bool = True
    unauthenticated: frozenset[str] = frozenset()
    unauthorized: frozenset[str] = frozenset()


def request_list(text: str | None) -> frozenset[str]:
    """The requests of a white list, between commas."""
    return frozenset(each.strip() for each in (text or "").split(",") if each.strip())


@final
class Rules:
    """All users' rules."""

    __slots__ = ("_documents", "_kept", "_settings")

    def __init__(self, documents: Documents, settings: PolicySettings) -> None:
        self._documents = documents
        self._settings = settings
        self._kept: dict[Hashable, Decision] = {}

    def decide(self, asked: Asked) -> Decision:
        """Whether a request may go on."""
        found = self.authenticate(asked)
        return self.authorize(asked) if found.allowed else found

    def authenticate(self, asked: Asked) -> Decision:
        """Whether it is the user whose name the request has."""

        def is_signed(user: User) -> bool:
            unsigned = unsigned_fields(asked.version)
            return verify(asked.fields, asked.body, user.password, unsigned)

        return self._authenticate(str(asked.code), asked.access_key, is_signed)

    def authorize(self, asked: Asked) -> Decision:
        """Whether that user may do what the request asks for."""
        if not self._checks_authorization(str(asked.code)):
            return Decision.allow("authorizationWhitelist, or it is off")
        depends_on = DEPENDS_ON.get(asked.code)
        if depends_on is None:
            return self._authorize(asked)
        topic, group = map(asked.fields.get, depends_on)
        key = (asked.code, asked.access_key, topic, group, asked.source)
        found = self._kept.get(key)
        if found is None:
            found = self._authorize(asked)
            if may_be_kept((topic, group)):
                self._keep(key, found)
        return found

    def authenticate_call(self, name: str, call: SignedCall) -> Decision:
        """Whether it is the user whose name a gRPC call has.

        @param name: the full name of the call's message.
        """
        return self._authenticate(
            name, call.access_key, lambda user: verify_call(call, user.password)
        )

    def authorize_call(
        self, name: str, access_key: str | None, wants: Wants, source: str
    ) -> Decision:
        """Whether a user may do what a gRPC call asks for.

        @param name: the full name of the call's message.
        @param wants: what L{rocketbroker.auth.wanted_by_calls} says of it.
        @param source: the client's address without its port.
        """
        if not self._checks_authorization(name):
            return Decision.allow("authorizationWhitelist, or it is off")
        key = (access_key, wants, source)
        found = self._kept.get(key)
        if found is None:
            found = self._all_of(access_key, wants, source)
            if may_be_kept(want.resource.name for want in wants):
                self._keep(key, found)
        return found

    def _checks_authorization(self, name: str) -> bool:
        settings = self._settings
        return settings.authorization and name not in settings.unauthorized

    def _keep(self, key: Hashable, decision: Decision) -> None:
        """Keep a decision at hand."""
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[key] = decision

    def _authenticate(
        self, name: str, access_key: str | None, is_signed: Callable[[User], bool]
    ) -> Decision:
        """Whether it is that user."""
        settings = self._settings
        if not settings.authentication or name in settings.unauthenticated:
            return Decision.allow("authenticationWhitelist, or it is off")
        if not access_key:
            return Decision.refuse("no user", "username cannot be null.")
        user = self._documents.users.get(access_key)
        if user is None:
            return Decision.refuse("no user", f"User:{access_key} is not found.")
        if user.status is UserStatus.DISABLE:
            words = f"User:{access_key} is disabled."
            return Decision.refuse(f"user {access_key}: disable", words)
        if not is_signed(user):
            rule = f"user {access_key}: signature"
            return Decision.refuse(rule, "check signature failed.")
        return Decision.allow(f"user {access_key}: signature")

    def _authorize(self, asked: Asked) -> Decision:
        settings = self._settings
        try:
            wants = wanted(asked, settings.release, settings.cluster)
        except RemoteProtocolError:
            return Decision.refuse("the body", "parse authorization context error.")
        return self._all_of(asked.access_key, wants, asked.source)

    def _all_of(self, access_key: str | None, wants: Wants, source: str) -> Decision:
        """Whether a user may do all of that."""
        rules = []
        for want in wants:
            found = self.may(access_key, want, source)
            if not found.allowed:
                return found
            rules.append(found.rule)
        return (
            Decision.allow("; ".join(dict.fromkeys(rules))) if rules else _ALL_ALLOWED
        )

    def may(self, access_key: str | None, want: Want, source: str) -> Decision:
        """Whether a user may do one thing, whoever asks.

        @param source: the client's address without its port.
        """
        if access_key is None:
            return Decision.refuse("no user", _FAILED)
        user = self._documents.users.get(access_key)
        if user is None:
            return Decision.refuse("no user", f"User:{access_key} not found.")
        again = self._settings.release is not Release.V5_3
        if again and user.status is UserStatus.DISABLE:
            words = f"User:{access_key} is disabled."
            return Decision.refuse(f"user {access_key}: disable", words)
        if user.type is UserType.SUPER:
            return Decision.allow(f"user {access_key}: {UserType.SUPER.value}")
        return self._by_policies(access_key, want, source)

    def _by_policies(self, access_key: str, want: Want, source: str) -> Decision:
        """The decision of a user's policies about one thing."""
        acl = self._documents.acls.get(access_key)
        try:
            kind, entries = _matching(acl, want, source)
        except UnknownSource:
            return Decision.refuse("the client's address is not known", _FAILED)
        words = (
            f"{SUBJECT_PREFIX}{access_key} has no permission to access {want.resource} "
            f"from {source}, "
        )
        if not entries:
            rule = f"user {access_key}: no policy matches"
            return Decision.refuse(rule, words + "no matched policies.")
        entry = first(entries, self._settings.release)
        rule = f"user {access_key}: {kind.value} policy: {entry}"
        if entry.is_denial:
            return Decision.refuse(rule, words + "the decision is deny.")
        return Decision.allow(rule)


def _matching(
    acl: Acl | None, want: Want, source: str
) -> tuple[PolicyType, list[Entry]]:
    """The entries that match: custom ones, or where there are none, default ones.

    @raise UnknownSource: it depends on an address that is not known.
    """
    for kind in PolicyType:
        policy = None if acl is None else acl.policy(kind)
        entries = () if policy is None else policy.entries
        found = [e for e in entries if e.matches(want.resource, want.actions, source)]
        if found:
            return kind, found
    return PolicyType.DEFAULT, []
