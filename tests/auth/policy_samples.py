"""Users and policies of ACL 2.0 for tests."""

from __future__ import annotations

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
from rocketbroker.auth.users import Documents, User, UserStatus, UserType


def resource(text: str) -> Resource:
    """The resource of a text that is one."""
    found = Resource.parse(text)
    assert found is not None, text
    return found


def entry(
    text: str,
    actions: str,
    effect: str = "Allow",
    sources: tuple[str, ...] = (),
) -> Entry:
    """An entry.

    @param actions: names between commas.
    """
    decided = named(Effect, effect)
    assert decided is not None
    known = [named(Action, name) for name in actions.split(",")]
    return Entry(
        resource(text), tuple(a for a in known if a is not None), decided, sources
    )


def acl(name: str, *custom: Entry, default: tuple[Entry, ...] = ()) -> Acl:
    """The policies of a user."""
    policies = (Policy(PolicyType.CUSTOM, custom), Policy(PolicyType.DEFAULT, default))
    return Acl(f"User:{name}", tuple(p for p in policies if p.entries))


#: A super user, a disabled one, and bob, who has policies.
SAMPLE = (
    Documents()
    .with_user(User("root", "12345678", UserType.SUPER))
    .with_user(User("bob", "12345678"))
    .with_user(User("gone", "12345678", UserType.SUPER, UserStatus.DISABLE))
    .with_acl(
        "bob",
        acl(
            "bob",
            entry("Topic:orders*", "Pub,Sub"),
            entry("Topic:ordersSecret", "All", "Deny"),
            entry("Group:g", "Sub", sources=("10.0.0.0/8",)),
            default=(entry("Topic:*", "Sub"),),
        ),
    )
)
