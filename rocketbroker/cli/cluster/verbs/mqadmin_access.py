# -*- test-case-name: tests.cli.cluster.verbs.test_mqadmin -*-
"""The commands of mqadmin about users and policies of ACL 2.0, as calls of our verbs.

C{docs/facts/admin.md} 6.6.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.auth.users import name_of
from rocketbroker.cli.cluster.verbs.mqadmin_translation import (
    Call,
    Translation,
    Values,
    place,
)
from rocketbroker.cli.exit_status import USAGE, Failure


def subject(values: Values, letter: str = "s") -> str:
    """The user of C{User:NAME}."""
    text = values.get(letter, "")
    name = name_of(text)
    if not name:
        raise Failure(f"-{letter} is User:NAME, not {text!r}.", USAGE)
    return name


def user_words(values: Values) -> Call:
    """What is said of a user."""
    words = [values["u"], *place(values)]
    for letter, option in (("t", "--type"), ("s", "--status")):
        if letter in values:
            words += [option, values[letter].lower()]
    return words


def update_user(values: Values) -> list[Call]:
    """With a new password, if one is given."""
    asked = ["--ask-password"] if "p" in values else []
    return [["user", "update", *user_words(values), *asked]]


def put_acl(values: Values) -> list[Call]:
    """Made, or changed if it is there: createAcl and updateAcl do the same."""
    words = ["--actions", values["a"], "--create", *place(values)]
    decision = values["d"].lower()
    if decision not in ("allow", "deny"):
        raise Failure("-d is Allow or Deny.", USAGE)
    words.append(f"--{decision}")
    sources = [word.strip() for word in values.get("i", "").split(",") if word.strip()]
    for source in sources:
        words += ["--from", source]
    if not sources:
        words.append("--from-anywhere")
    resources = [word.strip() for word in values["r"].split(",") if word.strip()]
    return [["acl", "update", subject(values), each, *words] for each in resources]


def list_acls(values: Values) -> list[Call]:
    """All, or those of which a text is a part."""
    words = ["acl", "ls"]
    if values.get("s"):
        words.append(values["s"].partition(":")[2] or values["s"])
    if values.get("r"):
        words += ["--resource", values["r"]]
    return [[*words, *place(values)]]


def listed(values: Values, letter: str) -> Call:
    """What stands between commas."""
    return [word for word in values.get(letter, "").split(",") if word]


def subjects(values: Values) -> Call:
    """The users of several subjects."""
    return [subject({"s": text}) for text in listed(values, "s")]


ACCESS: Final[dict[str, Translation]] = {
    "createUser": Translation(
        "c/clusterName b/brokerAddr u/username* p/password* t/userType",
        lambda v: [["user", "create", *user_words(v)]],
        password="p",
    ),
    "updateUser": Translation(
        "c/clusterName b/brokerAddr u/username* p/password t/userType s/userStatus",
        update_user,
        password="p",
    ),
    "deleteUser": Translation(
        "c/clusterName b/brokerAddr u/username*",
        lambda v: [["user", "delete", v["u"], *place(v), "--yes"]],
    ),
    "getUser": Translation(
        "c/clusterName b/brokerAddr u/username*",
        lambda v: [["user", "show", v["u"], *place(v)]],
    ),
    "listUser": Translation(
        "c/clusterName b/brokerAddr f/filter",
        lambda v: [["user", "ls", *([v["f"]] if v.get("f") else []), *place(v)]],
    ),
    "copyUser": Translation(
        "f/fromBroker* t/toBroker* u/usernames",
        lambda v: [["user", "copy", v["f"], v["t"], *listed(v, "u")]],
    ),
    **dict.fromkeys(
        ("createAcl", "updateAcl"),
        Translation(
            "c/clusterName b/brokerAddr s/subject* r/resources* a/actions* "
            "d/decision* i/sourceIp",
            put_acl,
        ),
    ),
    "deleteAcl": Translation(
        "c/clusterName b/brokerAddr s/subject* r/resources",
        lambda v: [
            ["acl", "delete", subject(v), *each, *place(v), "--yes"]
            for each in ([[one] for one in listed(v, "r")] or [[]])
        ],
    ),
    "getAcl": Translation(
        "c/clusterName b/brokerAddr s/subject*",
        lambda v: [["acl", "show", subject(v), *place(v)]],
    ),
    "listAcl": Translation(
        "c/clusterName b/brokerAddr s/subject r/resource", list_acls
    ),
    "copyAcl": Translation(
        "f/fromBroker* t/toBroker* s/subjects",
        lambda v: [["acl", "copy", v["f"], v["t"], *subjects(v)]],
    ),
}
