# -*- test-case-name: tests.auth.test_policy_edits -*-
"""Edits of users and policies, as operators ask for them (requests 3001 to 3010).

Each is a function from documents to documents; the caller keeps them and makes new
rules. A refused edit is the error with the code and the words of RocketMQ's answer
(C{docs/facts/security-metrics.md} 3.5; its C{AdminBrokerProcessor},
C{AuthenticationMetadataManagerImpl} and C{AuthorizationMetadataManagerImpl}).

The parameter C{login} is the access key of the operator's own request, None if
signatures are not checked; only super users make and change super users.
"""

from __future__ import annotations

import attrs

from rocketbroker.auth.entries import (
    Acl,
    Action,
    Entry,
    Policy,
    PolicyType,
    is_source,
    named,
)
from rocketbroker.auth.policy_documents import AclInfo, EntryInfo, UserInfo
from rocketbroker.auth.resources import Resource
from rocketbroker.auth.signatures import Credentials
from rocketbroker.auth.users import (
    SUBJECT_PREFIX,
    Documents,
    User,
    UserStatus,
    UserType,
    name_of,
)
from rocketbroker.errors import (
    ConfigurationError,
    InvalidParameter,
    NoPermission,
    RemoteProtocolError,
    SystemFailure,
)
from rocketbroker.wire.fastjson import loads


def with_new_user(
    documents: Documents, name: str, info: UserInfo, login: str | None
) -> Documents:
    """With one user more (3001).

    @raise BrokerError: it is refused.
    """
    _check_name(name)
    if info.type is UserType.SUPER and not is_super(documents, login):
        raise SystemFailure("The super user can only be create by super user")
    if not name.strip():
        raise NoPermission("username can not be blank")
    if info.password is None or not info.password.strip():
        raise NoPermission("password can not be blank")
    if name in documents.users:
        raise NoPermission("The user is existed")
    kind, status = info.type or UserType.NORMAL, info.status or UserStatus.ENABLE
    return documents.with_user(User(name, info.password, kind, status))


def with_changed_user(
    documents: Documents, name: str, info: UserInfo, login: str | None
) -> Documents:
    """With what is given of a user changed (3002).

    @raise BrokerError: it is refused.
    """
    _check_name(name)
    if info.type is UserType.SUPER and not is_super(documents, login):
        raise SystemFailure("The super user can only be update by super user")
    if not name.strip():
        raise NoPermission("username can not be blank")
    user = documents.users.get(name)
    if user is None:
        raise NoPermission("The user is not exist")
    _check_super(documents, user, login)
    password = info.password if info.password and info.password.strip() else None
    return documents.with_user(
        attrs.evolve(
            user,
            password=user.password if password is None else password,
            type=info.type or user.type,
            status=info.status or user.status,
        )
    )


def without_user(documents: Documents, name: str, login: str | None) -> Documents:
    """Without a user and the policies (3003); an unknown one is no error.

    @raise BrokerError: it is refused.
    """
    if not name.strip():
        raise NoPermission("username can not be blank")
    user = documents.users.get(name)
    if user is None:
        return documents
    _check_super(documents, user, login)
    return documents.without_user(name)


def user_of(documents: Documents, name: str) -> User | None:
    """A user (3004).

    @raise BrokerError: the name is blank.
    """
    if not name.strip():
        raise InvalidParameter("The username is blank")
    return documents.users.get(name)


def listed_users(documents: Documents, part: str | None) -> list[User]:
    """The users whose names have a part, in the order of their names (3005)."""
    wanted = part if part and part.strip() else ""
    names = sorted(documents.users, key=str.encode)
    return [documents.users[name] for name in names if wanted in name]


def with_acl(documents: Documents, subject: str | None, info: AclInfo) -> Documents:
    """With policies made or changed (3006 and 3007, which do the same).

    @param subject: that of the request's header, for a body without one.
    @raise BrokerError: it is refused.
    """
    if not info.policies:
        raise SystemFailure("The body of acl is null")
    name = name_of(info.subject)
    if name is None:
        name = name_of(subject)
    if name is None:
        raise SystemFailure("An system error occurred, please try again later.")
    policies = tuple(
        Policy(each.type, tuple(map(_checked, each.entries)))
        for each in info.policies
        if each.entries
    )
    if not policies:
        raise NoPermission("The policies is empty.")
    key = SUBJECT_PREFIX + name
    if name not in documents.users:
        raise NoPermission(f"The subject of {key} is not exist.")
    old = documents.acls.get(name)
    acl = Acl(key, policies) if old is None else old.with_policies(policies)
    return documents.with_acl(name, acl)


def without_acl(
    documents: Documents,
    subject: str | None,
    policy_type: str | None = None,
    resource: str | None = None,
) -> Documents:
    """Without the entry about a resource, or all policies of a subject (3008).

    @param policy_type: custom, unless it is said.
    @param resource: one that is none takes all policies away, as in RocketMQ.
    @raise BrokerError: it is refused.
    """
    name = name_of(subject)
    if name is None:
        raise NoPermission("The subject is null.")
    if name not in documents.users:
        raise NoPermission("The subject is not exist.")
    acl = documents.acls.get(name)
    if acl is None:
        raise NoPermission("The acl is not exist.")
    wanted = Resource.parse(resource)
    if wanted is None:
        return documents.without_acl(name)
    left = acl.without(named(PolicyType, policy_type) or PolicyType.CUSTOM, wanted)
    if not left.policies:
        return documents.without_acl(name)
    return documents.with_acl(name, left)


def acl_of(documents: Documents, subject: str | None) -> Acl | None:
    """The policies of a subject (3009), None if it has none.

    @raise BrokerError: there is no such subject.
    """
    name = name_of(subject)
    if name is None:
        raise NoPermission("The subject is null.")
    if name not in documents.users:
        raise NoPermission("The subject is not exist.")
    return documents.acls.get(name)


def listed_acls(
    documents: Documents, subject_part: str | None, resource_part: str | None
) -> list[Acl]:
    """The policies of subjects, and the entries about resources, whose texts have a
    part (3010), in the order of the subjects."""
    found = []
    for _, acl in sorted(documents.acls.items(), key=lambda pair: pair[0].encode()):
        if subject_part and subject_part.strip() and subject_part not in acl.subject:
            continue
        policies = acl.policies
        if resource_part and resource_part.strip():
            kept = [(each, _about(each, resource_part)) for each in policies]
            policies = tuple(Policy(old.type, some) for old, some in kept if some)
        if policies:
            found.append(attrs.evolve(acl, policies=policies))
    return found


def initial_user(text: str) -> Credentials | None:
    """The user of the setting C{initAuthenticationUser}, None if it is blank.

    @raise ConfigurationError: it is no user with a name and a password.
    """
    if not text.strip():
        return None
    try:
        info = UserInfo.from_json(loads(text))
    except RemoteProtocolError:
        info = UserInfo()
    name, password = info.name or "", info.password or ""
    if not name.strip() or not password.strip():
        raise ConfigurationError(
            'initAuthenticationUser must be {"username":"NAME","password":"PASSWORD"}.'
        )
    return Credentials(name, password)


def with_first_users(
    documents: Documents, initial: Credentials | None, inner: Credentials | None
) -> Documents:
    """With the super users of two settings; users that are there already stay.

    @param initial: the one of L{initial_user}.
    @param inner: C{innerClientAuthenticationCredentials}, the broker's own user.
    """
    for credentials in (initial, inner):
        if credentials is not None and credentials.access_key not in documents.users:
            user = User(credentials.access_key, credentials.secret_key, UserType.SUPER)
            documents = documents.with_user(user)
    return documents


def is_super(documents: Documents, login: str | None) -> bool:
    """Whether a request is a super user's, or everybody counts as one."""
    if not login:
        return True
    user = documents.users.get(login)
    if user is None:
        raise NoPermission(f"User:{login} is not found")
    return user.type is UserType.SUPER


def _check_name(name: str) -> None:
    if not name:
        raise InvalidParameter("The username is blank")


def _check_super(documents: Documents, user: User, login: str | None) -> None:
    if user.type is UserType.SUPER and not is_super(documents, login):
        raise NoPermission("The super user can only be update by super user")


def _about(policy: Policy, part: str) -> tuple[Entry, ...]:
    """The entries of a policy about resources whose texts have a part."""
    return tuple(each for each in policy.entries if part in str(each.resource))


def _checked(info: EntryInfo) -> Entry:
    """An entry that may be kept."""
    if info.resource is None:
        raise NoPermission("The resource is null.")
    if not info.actions:
        raise NoPermission("The actions is empty.")
    if Action.ANY in info.actions:
        raise NoPermission("The actions can not be Any.")
    for source in info.sources:
        if not source.strip():
            raise NoPermission("The source ip is empty.")
        if not is_source(source):
            raise NoPermission("The source ip is invalid.")
    if info.effect is None:
        raise NoPermission("The decision is null or illegal.")
    return Entry(info.resource, info.actions, info.effect, info.sources)
