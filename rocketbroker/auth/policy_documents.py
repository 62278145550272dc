# -*- test-case-name: tests.auth.test_policy_documents -*-
"""Users and policies as JSON: bodies of requests 3001 to 3010, and documents to keep.

Both have the same form, that of RocketMQ's C{UserInfo} and C{AclInfo}
(C{docs/facts/admin.md} 2.6): enumerations stand there by their names. A member that is
missing is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import attrs

from rocketbroker.auth.entries import (
    Acl,
    Action,
    Effect,
    Entry,
    Policy,
    PolicyType,
    named,
)
from rocketbroker.auth.resources import Resource
from rocketbroker.auth.users import Documents, User, UserStatus, UserType, name_of
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.fields import Fields


@attrs.frozen(kw_only=True)
class UserInfo:
    """A user as an operator gives it; all may be missing.

    @ivar type: None for none and for an unknown one, and C{status} the same.
    """

    name: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    type: UserType | None = None
    status: UserStatus | None = None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no user.
        """
        fields = Fields(value, "a user")
        return cls(
            name=fields.text("username"),
            password=fields.text("password"),
            type=named(UserType, fields.text("userType")),
            status=named(UserStatus, fields.text("userStatus")),
        )


def user_json(user: User) -> dict[str, object]:
    """A user with the password, as RocketMQ shows it."""
    return {
        "username": user.name,
        "password": user.password,
        "userType": user.type.value,
        "userStatus": user.status.value,
    }


@attrs.frozen(kw_only=True)
class EntryInfo:
    """An entry as an operator gives it, not yet checked.

    @ivar resource: None if the text is no resource.
    @ivar actions: those whose names are known.
    @ivar effect: None if it is neither Allow nor Deny.
    """

    resource: Resource | None
    actions: tuple[Action, ...]
    sources: tuple[str, ...]
    effect: Effect | None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no entry.
        """
        fields = Fields(value, "an entry of a policy")
        actions = [named(Action, name) for name in fields.strings("actions")]
        return cls(
            resource=Resource.parse(fields.text("resource")),
            actions=tuple(action for action in actions if action is not None),
            sources=tuple(fields.strings("sourceIps")),
            effect=named(Effect, fields.text("decision")),
        )


@attrs.frozen(kw_only=True)
class PolicyInfo:
    """A policy as an operator gives it; without a known type it is a custom one."""

    type: PolicyType
    entries: Sequence[EntryInfo]

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no policy.
        """
        fields = Fields(value, "a policy")
        return cls(
            type=named(PolicyType, fields.text("policyType")) or PolicyType.CUSTOM,
            entries=fields.beans("entries", EntryInfo.from_json),
        )


@attrs.frozen(kw_only=True)
class AclInfo:
    """A user's policies as an operator gives them.

    @ivar subject: None if the body has none.
    """

    subject: str | None
    policies: Sequence[PolicyInfo]

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "the policies of a subject")
        return cls(
            subject=fields.text("subject"),
            policies=fields.beans("policies", PolicyInfo.from_json),
        )


def acl_json(acl: Acl) -> dict[str, object]:
    """A user's policies."""
    return {
        "subject": acl.subject,
        "policies": [
            {
                "policyType": policy.type.value,
                "entries": [_entry_json(entry) for entry in policy.entries],
            }
            for policy in acl.policies
        ],
    }


def _entry_json(entry: Entry) -> dict[str, object]:
    found: dict[str, object] = {
        "resource": str(entry.resource),
        "actions": [action.value for action in entry.actions],
        "decision": entry.effect.value,
    }
    return {**found, "sourceIps": [*entry.sources]} if entry.sources else found


def users_json(documents: Documents) -> list[dict[str, object]]:
    """The document of all users."""
    return [user_json(user) for user in documents.users.values()]


def acls_json(documents: Documents) -> list[dict[str, object]]:
    """The document of all policies."""
    return [acl_json(acl) for acl in documents.acls.values()]


def from_json(users: object, acls: object) -> Documents:
    """The documents that L{users_json} and L{acls_json} gave.

    @raise RemoteProtocolError: they are none; the text says what is wrong.
    """
    if not isinstance(users, list) or not isinstance(acls, list):
        raise RemoteProtocolError("users and policies must be arrays")
    kept = [acl_from(each) for each in acls]
    return Documents({each.name: each for each in map(user_from, users)}, dict(kept))


def user_from(value: object) -> User:
    """A complete user, as L{user_json} gives it.

    @raise RemoteProtocolError: it is none; the text says what is wrong.
    """
    info = UserInfo.from_json(value)
    if not info.name or info.password is None or not info.type or not info.status:
        raise RemoteProtocolError(
            f"the user {info.name!r} lacks password, userType or userStatus"
        )
    return User(info.name, info.password, info.type, info.status)


def acl_from(value: object) -> tuple[str, Acl]:
    """The name of a user, and the user's policies, as L{acl_json} gives them.

    @raise RemoteProtocolError: it is none; the text says what is wrong.
    """
    info = AclInfo.from_json(value)
    name = name_of(info.subject)
    if not name or info.subject is None:
        raise RemoteProtocolError(f"{info.subject!r} is no subject")
    policies = [
        Policy(each.type, tuple(map(_kept_entry, each.entries)))
        for each in info.policies
    ]
    return name, Acl(info.subject, tuple(policies))


def _kept_entry(info: EntryInfo) -> Entry:
    if info.resource is None or info.effect is None:
        raise RemoteProtocolError("an entry of a policy lacks resource or decision")
    return Entry(info.resource, info.actions, info.effect, info.sources)
