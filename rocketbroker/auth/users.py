# -*- test-case-name: tests.auth.test_users -*-
"""Users of ACL 2.0, and all that is known of them: the documents of its rules.

C{docs/facts/security-metrics.md} 3.4 and 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, Self

import attrs

from rocketbroker.auth.entries import Acl


class UserType(Enum):
    """A super user may do everything; the value is the name in texts."""

    SUPER = "Super"
    NORMAL = "Normal"


class UserStatus(Enum):
    """A disabled user may do nothing; the value is the name in texts."""

    ENABLE = "enable"
    DISABLE = "disable"


#: What a subject's text begins with; there are no subjects but users.
SUBJECT_PREFIX: Final = "User:"


@attrs.frozen
class User:
    """A user, whose password is the key of signatures."""

    name: str
    password: str = attrs.field(repr=False)
    type: UserType = UserType.NORMAL
    status: UserStatus = UserStatus.ENABLE

    @property
    def subject(self) -> str:
        """Its name as the subject of policies."""
        return SUBJECT_PREFIX + self.name


def name_of(subject: str | None) -> str | None:
    """The user whose subject it is, None if it is no user's."""
    if subject is None:
        return None
    kind, _, name = subject.partition(":")
    return name if kind.lower() == "user" else None


@attrs.frozen
class Documents:
    """All users and policies. Edits give new ones; nothing in them changes.

    @ivar users: by their names.
    @ivar acls: by the names of their users.
    """

    users: Mapping[str, User] = attrs.field(factory=dict)
    acls: Mapping[str, Acl] = attrs.field(factory=dict)

    def with_user(self, user: User) -> Self:
        """The same with a user."""
        return attrs.evolve(self, users={**self.users, user.name: user})

    def without_user(self, name: str) -> Self:
        """The same without a user and all its policies."""
        users = {key: user for key, user in self.users.items() if key != name}
        return attrs.evolve(self, users=users).without_acl(name)

    def with_acl(self, name: str, acl: Acl) -> Self:
        """The same with the policies of a user."""
        return attrs.evolve(self, acls={**self.acls, name: acl})

    def without_acl(self, name: str) -> Self:
        """The same without the policies of a user."""
        acls = {key: acl for key, acl in self.acls.items() if key != name}
        return attrs.evolve(self, acls=acls)
