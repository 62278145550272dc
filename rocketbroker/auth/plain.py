# -*- test-case-name: tests.auth.test_plain -*-
"""Rules of ACL 1.0: addresses, accounts and their permissions.

The order of the checks is RocketMQ's (C{docs/facts/security-metrics.md} 2.3; its
C{PlainPermissionManager.validate}): addresses that need nothing, the account, its own
addresses, the signature, the trace topic, an administrator's requests, permissions.

Rules are made once for the documents as they are, and never change: a document that
was edited makes new ones. A request costs a few look-ups and its signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from rocketbroker.auth.address_patterns import AddressPattern, parse
from rocketbroker.auth.decision import Decision, may_be_kept
from rocketbroker.auth.permissions import (
    ADMIN_CODES,
    PUB,
    TEXTS,
    Edition,
    Needed,
    covers,
    needed,
    permission,
    printed,
)
from rocketbroker.auth.plain_documents import Account, Document
from rocketbroker.auth.request import Asked
from rocketbroker.auth.signatures import UNIQUE_KEY_QUERY, unsigned_fields, verify
from rocketbroker.errors import ConfigurationError, RemoteProtocolError, SystemFailure
from rocketbroker.records.names import TRACE_TOPIC, is_retry_topic

#: What stands before the words of a refusal, which is an exception's text.
EXCEPTION: Final = "org.apache.rocketmq.acl.common.AclException: "

#: How many decisions are kept for an account, and for addresses.
MAX_KEPT: Final = 4096

_TO_TRACE: Final = (TRACE_TOPIC, PUB)


def refusal(rule: str, words: str) -> Decision:
    """A refusal, with the code and the form of RocketMQ's answer."""
    return Decision.refuse(rule, EXCEPTION + words, SystemFailure.code)


@final
class _Owner:
    """An account, ready to be asked.

    @ivar secret_key: its secret.
    @ivar white: the addresses that need no signature.
    @ivar is_admin: whether it is an administrator.
    """

    __slots__ = (
        "_account",
        "_defaults",
        "_edition",
        "_kept",
        "_perms",
        "is_admin",
        "secret_key",
        "white",
    )

    def __init__(self, account: Account, edition: Edition) -> None:
        """
        @raise ValueError: a key is too short, or a permission or pattern is none.
        """
        if account.has_short_keys:
            raise ValueError("accessKey and secretKey must be longer than 6 characters")
        self._account = account
        self._edition = edition
        self._perms = account.permissions()
        self._defaults = (
            permission(account.default_topic_perm),
            permission(account.default_group_perm),
        )
        self._kept: dict[tuple[bool, Needed], Decision] = {}
        self.is_admin = account.admin
        self.secret_key = account.secret_key
        self.white = account.pattern()

    def decide(self, code: int, needs: Needed) -> Decision:
        """Whether it may have what a request needs, if its signature is right."""
        needs_admin = code in ADMIN_CODES[self._edition]
        if needs_admin and not self._account.admin and _TO_TRACE not in needs:
            key = self._account.access_key
            return refusal(
                f"account {key}: admin",
                f"Need admin permission for request code={code}, but accessKey={key} "
                "is not",
            )
        found = self._kept.get((needs_admin, needs))
        if found is None:
            found = self._permitted(needs)
            if may_be_kept(name for name, _ in needs):
                if len(self._kept) >= MAX_KEPT:
                    self._kept.clear()
                self._kept[needs_admin, needs] = found
        return found

    def _permitted(self, needs: Needed) -> Decision:
        """Whether it has all permissions that are needed."""
        account = f"account {self._account.access_key}"
        if _TO_TRACE in needs:
            return Decision.allow(f"{TRACE_TOPIC} is open to all accounts")
        if not needs:
            return Decision.allow(f"{account}: the request needs no permission")
        if self._account.admin and (self._edition is Edition.V5 or not self._perms):
            return Decision.allow(f"{account}: admin")
        rules = []
        for resource, bits in needs:
            rule, owned = self._owned(resource)
            rules.append(f"{account}: {rule}")
            if not covers(owned, bits):
                kind = "default permission"
                if resource in self._perms and self._edition is Edition.V5:
                    kind = "permission"
                return refusal(rules[-1], f"No {kind} for {printed(resource)}")
        return Decision.allow("; ".join(dict.fromkeys(rules)))

    def _owned(self, resource: str) -> tuple[str, int]:
        """Its permission on a resource, and the rule that gives it."""
        is_group = is_retry_topic(resource)
        kind = "group" if is_group else "topic"
        owned = self._perms.get(resource)
        if owned is not None:
            name = printed(resource).partition(":")[2]
            return f"{kind}Perms {name}={_text(owned)}", owned
        owned = self._defaults[is_group]
        return f"default{kind.title()}Perm={_text(owned)}", owned


def _text(bits: int) -> str:
    """The text of a permission."""
    return next(text for text, value in TEXTS.items() if value == bits)


@final
class Rules:
    """All documents' rules.

    @ivar ignored: accounts that stand in an earlier document too, a sentence each.
    """

    def __init__(self, documents: Iterable[Document], edition: Edition) -> None:
        """
        @param documents: in the order in which they were found, C{plain_acl.yml} last:
            of two accounts with one name the first counts.
        @raise ConfigurationError: a document has a rule that is none; one sentence.
        """
        self.ignored: list[str] = []
        self._edition = edition
        self._white: list[tuple[str, AddressPattern]] = []
        self._owners: dict[str, _Owner] = {}
        self._kept_white: dict[str, Decision | None] = {}
        for document in documents:
            self._add(document)

    def _add(self, document: Document) -> None:
        """Take the rules of one document."""
        found: dict[str, _Owner] = {}
        try:
            for text in document.white_addresses:
                self._white.append((text, parse(text)))
            for account in document.accounts:
                key = account.access_key
                owner = _Owner(account, self._edition)
                if key in self._owners or key in found:
                    self.ignored.append(f"{document.path}: {key} is there already")
                else:
                    found[key] = owner
        except ValueError as error:
            raise ConfigurationError(f"{document.path}: {error}.") from None
        self._owners.update(found)

    def decide(self, asked: Asked) -> Decision:
        """Whether a request may go on."""
        owner = self._owner(asked)
        if isinstance(owner, Decision):
            return owner
        unsigned = self._unsigned(asked)
        if not verify(asked.fields, asked.body, owner.secret_key, unsigned):
            key = asked.access_key
            words = f"Check signature failed for accessKey={key}"
            return refusal(f"account {key}: signature", words)
        return self._permitted(owner, asked)

    def _owner(self, asked: Asked) -> _Owner | Decision:
        """The account of a request whose signature counts."""
        white = self._is_white(asked.source)
        if white is not None:
            return white
        key = asked.access_key
        if key is None:
            return refusal("no account", "No accessKey is configured")
        owner = self._owners.get(key)
        if owner is None:
            return refusal("no account", f"No acl config for {key}")
        if owner.white.matches(asked.source):
            return Decision.allow(f"account {key}: whiteRemoteAddress")
        return owner

    def _permitted(self, owner: _Owner, asked: Asked) -> Decision:
        """Whether an account may have what a request needs."""
        try:
            needs = needed(asked, self._edition)
        except RemoteProtocolError as error:
            return refusal("the body", str(error))
        return owner.decide(asked.code, needs)

    def may(self, access_key: str | None, needs: Needed) -> Decision:
        """Whether an account may have that, whoever asks."""
        if access_key is None:
            return refusal("no account", "No accessKey is configured")
        owner = self._owners.get(access_key)
        if owner is None:
            return refusal("no account", f"No acl config for {access_key}")
        return owner.decide(0, needs)

    def is_admin(self, access_key: str | None) -> bool:
        """Whether an account is an administrator's."""
        owner = self._owners.get(access_key or "")
        return owner is not None and owner.is_admin

    def _is_white(self, source: str) -> Decision | None:
        """The decision for addresses that need no account, None for others."""
        if source in self._kept_white:
            return self._kept_white[source]
        rule = next((text for text, each in self._white if each.matches(source)), None)
        found = None
        if rule is not None:
            found = Decision.allow(f"globalWhiteRemoteAddresses {rule}")
        if len(self._kept_white) >= MAX_KEPT:
            self._kept_white.clear()
        self._kept_white[source] = found
        return found

    def _unsigned(self, asked: Asked) -> Sequence[str]:
        """The fields that the client's signature does not cover."""
        if self._edition is Edition.V4_9:
            return (UNIQUE_KEY_QUERY,)
        return unsigned_fields(asked.version)
