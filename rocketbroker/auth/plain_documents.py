# -*- test-case-name: tests.auth.test_plain_documents -*-
"""Documents of ACL 1.0: C{plain_acl.yml} and the files of C{conf/acl}, as values.

Their members: C{docs/facts/security-metrics.md} 2.1. They are read as leniently as
RocketMQ reads them: a number in the place of a text is its digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import attrs
import yaml

from rocketbroker.auth.address_patterns import AddressPattern, parse
from rocketbroker.auth.java_strings import tokens
from rocketbroker.auth.permissions import TEXTS, permission
from rocketbroker.errors import ConfigurationError, RemoteProtocolError
from rocketbroker.records.names import retry_topic
from rocketbroker.wire.fields import Fields

# Members of a document.
WHITE_ADDRESSES: Final = "globalWhiteRemoteAddresses"
ACCOUNTS: Final = "accounts"
DATA_VERSION: Final = "dataVersion"

#: Access keys and secret keys have more characters than this.
SHORT_KEY: Final = 6


@attrs.frozen(kw_only=True)
class Account:
    """An account as it stands in a document.

    @ivar white_address: the pattern of addresses that need no signature.
    @ivar topic_perms: C{name=permission}, and C{group_perms} the same.
    """

    access_key: str
    secret_key: str = attrs.field(repr=False)
    white_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: Sequence[str] = ()
    group_perms: Sequence[str] = ()

    @classmethod
    def from_members(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: a member has the wrong kind.
        """
        fields = Fields(value, "an account")
        return cls(
            access_key=fields.text("accessKey") or "",
            secret_key=fields.text("secretKey") or "",
            white_address=fields.text("whiteRemoteAddress"),
            admin=fields.boolean("admin"),
            default_topic_perm=fields.text("defaultTopicPerm"),
            default_group_perm=fields.text("defaultGroupPerm"),
            topic_perms=tuple(fields.strings("topicPerms")),
            group_perms=tuple(fields.strings("groupPerms")),
        )

    @property
    def has_short_keys(self) -> bool:
        """Whether RocketMQ takes its keys for too short."""
        return min(len(self.access_key), len(self.secret_key)) <= SHORT_KEY

    def pattern(self) -> AddressPattern:
        """The addresses that need no signature.

        @raise ValueError: the pattern is none.
        """
        return parse(self.white_address)

    def permissions(self) -> dict[str, int]:
        """The bits of each resource that is named; of a group its retry topic.

        @raise ValueError: an entry is not of the form C{name=permission}.
        """
        groups = {retry_topic(n): bits for n, bits in map(entry, self.group_perms)}
        return {**groups, **dict(map(entry, self.topic_perms))}


def entry(text: str) -> tuple[str, int]:
    """Name and bits of C{name=permission}.

    @raise ValueError: it is not of that form.
    """
    parts = tokens(text, "=")
    if len(parts) != 2:
        raise ValueError(f"{text!r} is not of the form name=PUB|SUB")
    return parts[0].strip(), permission(parts[1])


def check_entries(entries: Sequence[str]) -> None:
    """Check the entries of an operator's request, more strictly than those of a file.

    @raise ValueError: one is not of the form, or is no permission.
    """
    for text in entries:
        entry(text)
        if tokens(text, "=")[1].strip() not in TEXTS:
            raise ValueError(f"{text!r}: the permissions are {', '.join(TEXTS)}")


@attrs.frozen(kw_only=True)
class Document:
    """One file.

    @ivar path: its path, the document's name in answers and in error messages.
    @ivar members: all that stands in it, to be written again.
    @ivar white_addresses: the patterns of addresses that need no account.
    @ivar accounts: the accounts in the order of the file.
    @ivar counter: how often requests have changed it.
    @ivar timestamp: when they last did, in ms.
    """

    path: str
    members: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    white_addresses: Sequence[str] = ()
    accounts: Sequence[Account] = ()
    counter: int = 0
    timestamp: int = 0


def read(path: str, text: str | bytes) -> Document:
    """Read a document. Patterns and permissions are checked by the rules.

    @raise ConfigurationError: it is no such document; one sentence with the path.
    """
    try:
        value = yaml.safe_load(text)
        return of_members(path, {} if value is None else value)
    except (yaml.YAMLError, RemoteProtocolError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"{path} cannot be read: {reason}.") from None


def of_members(path: str, members: Any) -> Document:
    """The document with these members.

    @raise RemoteProtocolError: one has the wrong kind.
    """
    fields = Fields(members, "the document")
    versions = fields.beans(DATA_VERSION, lambda each: Fields(each, "a data version"))
    return Document(
        path=path,
        members=members,
        white_addresses=fields.strings(WHITE_ADDRESSES),
        accounts=fields.beans(ACCOUNTS, Account.from_members),
        counter=versions[0].integer("counter", bits=64) if versions else 0,
        timestamp=versions[0].integer("timestamp", bits=64) if versions else 0,
    )


def written(document: Document) -> str:
    """The text of a document, with all its members in their order."""
    text: str = yaml.safe_dump(
        dict(document.members), sort_keys=False, allow_unicode=True
    )
    return text
