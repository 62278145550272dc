# -*- test-case-name: tests.auth.test_plain_edits -*-
"""Edits of ACL 1.0 documents, as operators ask for them (requests 50 to 54).

Each is a function that takes the documents as they are and gives the one that changes;
the caller writes its text, and makes new rules. A refused edit is a C{ValueError} with
words for the answer. C{docs/facts/security-metrics.md} 2.4; RocketMQ's
C{PlainPermissionManager}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import attrs

from rocketbroker.auth.java_strings import split
from rocketbroker.auth.plain_documents import (
    ACCOUNTS,
    DATA_VERSION,
    WHITE_ADDRESSES,
    Account,
    Document,
    check_entries,
    of_members,
)


@attrs.frozen(kw_only=True)
class AccountChange:
    """What request 50 gives: an account, new or known. None leaves a member as it is.

    @ivar admin: written always.
    """

    access_key: str
    secret_key: str = attrs.field(repr=False)
    white_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: Sequence[str] | None = None
    group_perms: Sequence[str] | None = None

    @classmethod
    def from_ext(cls, fields: Mapping[str, str]) -> Self:
        """Read the fields of a request."""
        topics, groups = fields.get("topicPerms"), fields.get("groupPerms")
        return cls(
            access_key=fields.get("accessKey", ""),
            secret_key=fields.get("secretKey", ""),
            white_address=fields.get("whiteRemoteAddress"),
            admin=fields.get("admin", "").lower() == "true",
            default_topic_perm=fields.get("defaultTopicPerm"),
            default_group_perm=fields.get("defaultGroupPerm"),
            topic_perms=None if topics is None else split(topics, ","),
            group_perms=None if groups is None else split(groups, ","),
        )

    def check(self) -> None:
        """Check it as RocketMQ does.

        @raise ValueError: a key is too short, or an entry or the pattern is wrong.
        """
        account = Account(
            access_key=self.access_key,
            secret_key=self.secret_key,
            white_address=self.white_address,
        )
        if account.has_short_keys:
            raise ValueError(
                f"The accessKey={self.access_key} and its secretKey cannot be null and "
                "length should longer than 6"
            )
        check_entries([*(self.topic_perms or ()), *(self.group_perms or ())])
        account.pattern()

    def members(self) -> dict[str, Any]:
        """The members of the account that are written."""
        given = {
            "accessKey": self.access_key,
            "secretKey": self.secret_key,
            "whiteRemoteAddress": self.white_address,
            "admin": self.admin,
            "defaultTopicPerm": self.default_topic_perm or None,
            "defaultGroupPerm": self.default_group_perm or None,
            "topicPerms": self.topic_perms,
            "groupPerms": self.group_perms,
        }
        return {name: value for name, value in given.items() if value is not None}


def with_account(
    documents: Sequence[Document], change: AccountChange, default: str, now_ms: int
) -> Document:
    """The document of an account with what a request changes or adds.

    @param default: the path of the document that gets new accounts.
    @raise ValueError: the change is refused.
    """
    change.check()
    document = _of_account(documents, change.access_key)
    if document is None:
        document = _named(documents, default) or Document(path=default)
    old = _members_of(document, change.access_key)
    others = [each for each in _accounts(document) if each is not old]
    new = {**(old or {}), **change.members()}
    return _changed(document, {ACCOUNTS: [*others, new]}, now_ms)


def without_account(
    documents: Sequence[Document], access_key: str, now_ms: int
) -> Document:
    """The document of an account without it.

    @raise ValueError: there is no such account.
    """
    document = _of_account(documents, access_key)
    if document is None:
        raise ValueError(
            f"The accesskey[{access_key}] corresponding to accessConfig has been "
            "deleted failed."
        )
    old = _members_of(document, access_key)
    others = [each for each in _accounts(document) if each is not old]
    return _changed(document, {ACCOUNTS: others}, now_ms)


def with_white_addresses(
    documents: Sequence[Document], addresses: Sequence[str], path: str, now_ms: int
) -> Document:
    """A document with other addresses that need no account.

    @param path: the document, which must be there.
    @raise ValueError: there is no such document.
    """
    document = _named(documents, path)
    if document is None:
        raise ValueError(
            f"The globalWhiteAddresses[{','.join(addresses)}] has been updated failed."
        )
    return _changed(document, {WHITE_ADDRESSES: [*addresses]}, now_ms)


def replaced(documents: Sequence[Document], edited: Document) -> list[Document]:
    """All documents, with an edited one in its place, or behind them if it is new."""
    found = [edited if each.path == edited.path else each for each in documents]
    return found if edited in found else [*found, edited]


def versions(documents: Sequence[Document]) -> dict[str, dict[str, int]]:
    """The data version of each document, by its path: the answer to request 52."""
    return {
        each.path: {"counter": each.counter, "timestamp": each.timestamp}
        for each in documents
    }


def listed(documents: Sequence[Document]) -> dict[str, object]:
    """All addresses and accounts, with their secrets: the answer to request 54."""
    accounts: dict[str, Account] = {}
    for document in documents:
        for account in document.accounts:
            accounts.setdefault(account.access_key, account)
    return {
        "globalWhiteAddrs": [a for each in documents for a in each.white_addresses],
        "plainAccessConfigs": [
            {
                "accessKey": each.access_key,
                "admin": each.admin,
                "defaultGroupPerm": each.default_group_perm,
                "defaultTopicPerm": each.default_topic_perm,
                "groupPerms": [*each.group_perms],
                "secretKey": each.secret_key,
                "topicPerms": [*each.topic_perms],
                "whiteRemoteAddress": each.white_address,
            }
            for each in accounts.values()
        ],
    }


def _named(documents: Sequence[Document], path: str) -> Document | None:
    return next((each for each in documents if each.path == path), None)


def _of_account(documents: Sequence[Document], access_key: str) -> Document | None:
    """The first document with an account."""
    for document in documents:
        if any(each.access_key == access_key for each in document.accounts):
            return document
    return None


def _accounts(document: Document) -> list[Mapping[str, Any]]:
    """The members of all its accounts."""
    return [each for each in document.members.get(ACCOUNTS) or () if each is not None]


def _members_of(document: Document, access_key: str) -> Mapping[str, Any] | None:
    """The members of one of its accounts."""
    for members in _accounts(document):
        if Account.from_members(members).access_key == access_key:
            return members
    return None


def _changed(document: Document, members: Mapping[str, Any], now_ms: int) -> Document:
    """The document with other members and its next version."""
    version = {"counter": document.counter + 1, "timestamp": now_ms}
    return of_members(
        document.path, {**document.members, **members, DATA_VERSION: [version]}
    )
