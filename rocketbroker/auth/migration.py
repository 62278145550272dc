# -*- test-case-name: tests.auth.test_migration -*-
"""Migration from ACL 1.0: each account becomes a user with policies.

As RocketMQ's C{AuthMigrator} does (C{docs/facts/security-metrics.md} 3.7), but for one
thing: it lets a permission whose text is unknown, which denied in ACL 1.0, allow
everything. Here it denies. Addresses that need no signature have no place in ACL 2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rocketbroker.auth.entries import Acl, Action, Effect, Entry, Policy, PolicyType
from rocketbroker.auth.java_strings import tokens
from rocketbroker.auth.permissions import PUB, SUB, permission
from rocketbroker.auth.plain_documents import Account, Document
from rocketbroker.auth.resources import Pattern, Resource, ResourceType, group, topic
from rocketbroker.auth.users import SUBJECT_PREFIX, Documents, User, UserType

_ACTIONS: Final = {
    PUB: (Action.PUB,),
    SUB: (Action.SUB,),
    PUB | SUB: (Action.PUB, Action.SUB),
}


def migrated(documents: Documents, plain: Iterable[Document]) -> Documents:
    """With users for all accounts that are not users yet.

    Of accounts with one name the first counts; one without a name or secret is left
    out.
    """
    for document in plain:
        for account in document.accounts:
            name, secret = account.access_key, account.secret_key
            if name in documents.users or not name.strip() or not secret.strip():
                continue
            kind = UserType.SUPER if account.admin else UserType.NORMAL
            documents = documents.with_user(User(name, secret, kind))
            policies = _policies(account)
            if policies:
                acl = Acl(SUBJECT_PREFIX + name, policies)
                documents = documents.with_acl(name, acl)
    return documents


def _policies(account: Account) -> tuple[Policy, ...]:
    """Its permissions on what it names, and the default ones."""
    custom = [
        _entry(topic(name), text) for name, text in _named(account.topic_perms)
    ] + [_entry(group(name), text) for name, text in _named(account.group_perms)]
    default = [
        _entry(Resource(kind, None, Pattern.ANY), text.strip())
        for kind, text in (
            (ResourceType.TOPIC, account.default_topic_perm),
            (ResourceType.GROUP, account.default_group_perm),
        )
        if text is not None and text.strip()
    ]
    both = (
        Policy(PolicyType.CUSTOM, tuple(custom)),
        Policy(PolicyType.DEFAULT, tuple(default)),
    )
    return tuple(policy for policy in both if policy.entries)


def _named(perms: Sequence[str]) -> list[tuple[str, str]]:
    """Names and permissions of entries; one of another form is left out."""
    found = (tokens(text, "=") for text in perms)
    return [(parts[0].strip(), parts[1].strip()) for parts in found if len(parts) == 2]


def _entry(resource: Resource, text: str) -> Entry:
    """The entry of a permission."""
    actions = _ACTIONS.get(permission(text))
    if actions is None:
        return Entry(resource, (Action.ALL,), Effect.DENY)
    return Entry(resource, actions, Effect.ALLOW)
