# -*- test-case-name: tests.cli.cluster.verbs.test_user -*-
"""Requests about users and policies of ACL 2.0 (3001 to 3010), and about what decides
(31012, of ours).

See C{docs/facts/admin.md} 2.6. Each broker has users and policies of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Self, TypeVar

import attrs

from rocketbroker.auth.policy_documents import AclInfo, EntryInfo, UserInfo
from rocketbroker.auth.users import SUBJECT_PREFIX
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.requests import brokers
from rocketbroker.cli.exit_status import NotThere
from rocketbroker.errors import (
    ConfigurationError,
    NoPermission,
    RemoteProtocolError,
    RequestCodeNotSupported,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fields import Fields, object_of

T = TypeVar("T")

#: How brokers say that there is no such subject, and that it has no policies.
_ABSENT: Final = ("subject is not exist", "acl is not exist")


def some_brokers(
    cluster: Cluster, in_cluster: str | None, name: str | None
) -> list[Broker]:
    """The brokers that are asked, masters and slaves; see C{Cluster.brokers}.

    @raise NotThere: there is none.
    """
    found = cluster.brokers(in_cluster, name)
    if not found:
        raise NotThere("The name server knows no broker: is one running?")
    return found


def _ask(
    cluster: Cluster,
    broker: Broker,
    code: RequestCode,
    fields: Mapping[str, str | None],
    body: object = None,
) -> Command:
    """Ask a broker; fields without a value are left out.

    @raise ConfigurationError: it has no users.
    """
    extra = {name: text for name, text in fields.items() if text}
    try:
        return cluster.ask(broker.address, code, body=body, extra=extra)
    except RequestCodeNotSupported:
        raise ConfigurationError(
            f"{broker.name} has no users of ACL 2.0: authenticationEnabled and "
            "authorizationEnabled are off there, or it is older than 5.3. "
            "docs/security.rst has accounts of ACL 1.0"
        ) from None


def _list_of(answer: Command, read: Callable[[object], T]) -> list[T]:
    """The members of an answer, which has no body if there are none."""

    def read_all(value: object) -> list[T]:
        if not isinstance(value, list):
            raise RemoteProtocolError("users and policies must be arrays")
        return [read(each) for each in value]

    return object_of(answer.body or b"[]", read_all)


def users(cluster: Cluster, broker: Broker) -> list[UserInfo]:
    """All users of a broker."""
    answer = _ask(cluster, broker, RequestCode.AUTH_LIST_USER, {})
    return _list_of(answer, UserInfo.from_json)


def user(cluster: Cluster, broker: Broker, name: str) -> UserInfo | None:
    """A user, or None."""
    fields = {"username": name}
    answer = _ask(cluster, broker, RequestCode.AUTH_GET_USER, fields)
    return object_of(answer.body, UserInfo.from_json) if answer.body else None


def create_user(cluster: Cluster, broker: Broker, info: UserInfo) -> None:
    """Create a user."""
    fields = {"username": info.name}
    _ask(cluster, broker, RequestCode.AUTH_CREATE_USER, fields, _user_json(info))


def update_user(cluster: Cluster, broker: Broker, info: UserInfo) -> None:
    """Change what is given of a user."""
    fields = {"username": info.name}
    _ask(cluster, broker, RequestCode.AUTH_UPDATE_USER, fields, _user_json(info))


def delete_user(cluster: Cluster, broker: Broker, name: str) -> None:
    """Delete a user with the policies; one that is not there, too, succeeds."""
    _ask(cluster, broker, RequestCode.AUTH_DELETE_USER, {"username": name})


def _user_json(info: UserInfo) -> dict[str, object]:
    found = {
        "username": info.name,
        "password": info.password,
        "userType": info.type.value if info.type else None,
        "userStatus": info.status.value if info.status else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def acls(cluster: Cluster, broker: Broker) -> list[AclInfo]:
    """The policies of all users of a broker."""
    answer = _ask(cluster, broker, RequestCode.AUTH_LIST_ACL, {})
    return _list_of(answer, AclInfo.from_json)


def acl(cluster: Cluster, broker: Broker, name: str) -> AclInfo | None:
    """The policies of a user; None if there are none, or there is no such user."""
    fields = {"subject": SUBJECT_PREFIX + name}
    try:
        answer = _ask(cluster, broker, RequestCode.AUTH_GET_ACL, fields)
    except NoPermission as problem:
        if any(words in str(problem) for words in _ABSENT):
            return None
        raise
    return object_of(answer.body, AclInfo.from_json) if answer.body else None


def put_acl(cluster: Cluster, broker: Broker, info: AclInfo) -> None:
    """Make or replace the entries of a user about resources; others stay."""
    body = {
        "subject": info.subject,
        "policies": [
            {
                "policyType": policy.type.value,
                "entries": [*map(_entry_json, policy.entries)],
            }
            for policy in info.policies
        ],
    }
    fields = {"subject": info.subject}
    _ask(cluster, broker, RequestCode.AUTH_UPDATE_ACL, fields, body)


def _entry_json(entry: EntryInfo) -> dict[str, object]:
    return {
        "resource": str(entry.resource),
        "actions": [action.value for action in entry.actions],
        "sourceIps": [*entry.sources],
        "decision": entry.effect.value if entry.effect else None,
    }


def delete_acl(
    cluster: Cluster,
    broker: Broker,
    name: str,
    policy_type: str | None = None,
    resource: str | None = None,
) -> None:
    """Delete all policies of a user, or the entry about a resource."""
    fields = {
        "subject": SUBJECT_PREFIX + name,
        "policyType": policy_type,
        "resource": resource,
    }
    _ask(cluster, broker, RequestCode.AUTH_DELETE_ACL, fields)


@attrs.frozen(kw_only=True)
class Explanation:
    """What a broker says of somebody, and of an action.

    @ivar user: whom it is about; None: nobody has signed.
    @ivar rule: which decides.
    @ivar remark: the words of a refusal.
    @ivar generation: of access control: C{1.0}, C{2.0} or C{none}.
    """

    user: str | None
    is_allowed: bool
    rule: str
    remark: str
    generation: str

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is none.
        """
        fields = Fields(value, "an explanation")
        return cls(
            user=fields.text("user"),
            is_allowed=fields.boolean("allowed"),
            rule=fields.text("rule") or "",
            remark=fields.text("remark") or "",
            generation=fields.text("generation") or "",
        )


def explanation(cluster: Cluster, broker: Broker, **fields: str | None) -> Explanation:
    """Who we are at a broker, or whether somebody may do something.

    @param fields: C{user}, and C{resource} with C{action}; none is needed.
    @raise ConfigurationError: it does not tell.
    """
    extra = {name: text for name, text in fields.items() if text}
    code = RequestCode.EXPLAIN_ACCESS
    try:
        answer = cluster.ask(broker.address, code, extra=extra)
    except RequestCodeNotSupported:
        settings = brokers.settings(cluster, broker)
        keys = ("aclEnable", "authenticationEnabled", "authorizationEnabled")
        if all(settings.get(key, "false") == "false" for key in keys):
            return Explanation(
                user=None,
                is_allowed=True,
                rule="no access control: everybody may",
                remark="",
                generation="none",
            )
        raise ConfigurationError(
            f"{broker.name} does not tell which rule decides: RocketMQ's brokers do not"
        ) from None
    return object_of(answer.body, Explanation.from_json)
