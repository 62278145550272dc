"""Access control decides as RocketMQ's own classes do."""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from rocketbroker.auth import policy_edits
from rocketbroker.auth.decision import Decision
from rocketbroker.auth.grpc_signatures import parse
from rocketbroker.auth.migration import migrated
from rocketbroker.auth.permissions import Edition
from rocketbroker.auth.plain import EXCEPTION, Rules
from rocketbroker.auth.plain_documents import Document, read
from rocketbroker.auth.plain_edits import (
    AccountChange,
    replaced,
    with_account,
    with_white_addresses,
    without_account,
)
from rocketbroker.auth.policies import PolicySettings
from rocketbroker.auth.policies import Rules as PolicyRules
from rocketbroker.auth.policy_documents import AclInfo, UserInfo, acl_json, user_json
from rocketbroker.auth.request import Asked
from rocketbroker.auth.users import Documents
from rocketbroker.auth.wanted import Release
from rocketbroker.auth.wanted_by_calls import full_name
from rocketbroker.auth.wanted_by_calls import wanted as wanted_by_call
from rocketbroker.errors import BrokerError, ConfigurationError, NoPermission
from rocketbroker.proxy import messages_pb2
from scripts.lab.javabroker import jars
from scripts.lab.javaclient import PROJECT, QUICK, build, why_not
from tests.heavy import HEAVY
from tests.integration.plain_cases import PATHS, Case, PlainCases
from tests.integration.policy_cases import PolicyCases

#: How many rule sets are made, each with L{REQUESTS} requests.
RULE_SETS = 20_000 if HEAVY else 2000
REQUESTS = 4
CALLS = 2
MIGRATIONS = RULE_SETS // 4
SEED = 50

#: Refusals whose last words name one of several missing permissions.
LACKS = re.compile("No (default )?permission for ")


def answers(path: Callable[[], str], source: str, cases: Sequence[Case]) -> list[Any]:
    """What a program with RocketMQ's classes says of each case.

    @param path: gives the path of the classes, which may have to be fetched.
    """
    reason = why_not()
    if reason is not None:
        raise SkipTest(reason)
    with TemporaryDirectory() as folder:
        quiet = Path(folder, "quiet.xml")
        quiet.write_text('<configuration><root level="OFF"/></configuration>')
        options = [
            f"-D{name}logback.configurationFile={quiet}" for name in ("", "rmq.")
        ]
        done = subprocess.run(
            [
                "java",
                *QUICK,
                "-Dfile.encoding=UTF-8",
                f"-Duser.home={folder}",
                *options,
                *("-cp", path(), str(PROJECT / "oracle" / source), folder),
            ],
            input="".join(json.dumps(case) + "\n" for case in cases).encode(),
            capture_output=True,
        )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if len(found) != len(cases):
        raise RuntimeError(done.stderr.decode(errors="replace")[-4000:])
    return found


def asked(request: dict[str, Any]) -> Asked:
    """A request as the rules see it."""
    return Asked(
        request["code"],
        request["fields"],
        b64decode(request["body"]),
        source=request["address"].rpartition(":")[0],
        version=request["version"],
    )


class PlainRulesTests(SynchronousTestCase):
    """ACL 1.0: RocketMQ's PlainAccessValidator beside ours."""

    if HEAVY:

        def test_decisionsOfLaterPlainRules(self) -> None:
            """That of 5.3.2 decides alike; how it reads and writes files is not
            compared: a member that is null refuses the file."""
            made = PlainCases(SEED)
            cases = [{**made.one(REQUESTS), "edits": []} for _ in range(RULE_SETS)]
            theirs = answers(
                lambda: f"{jars('5.3.2', 'acl')}/*", "PlainRules.java", cases
            )
            pairs = [
                pair for pair in zip(cases, theirs, strict=True) if pair[1]["loaded"]
            ]
            self.assertGreater(len(pairs), RULE_SETS // 2)
            different = [
                (case, answer)
                for case, answer in pairs
                if not alike_decisions(ours(case, Edition.V5), answer)
            ]
            self.assertEqual(different[:2], [], f"{len(different)} of {len(pairs)}")

    def test_decisionsOfPlainRules(self) -> None:
        """That of 4.9.8: documents that one refuses the other refuses; edits give the
        same documents; each request is allowed or refused alike, in the same words."""
        made = PlainCases(SEED)
        cases = [made.one(REQUESTS) for _ in range(RULE_SETS)]
        different = []
        outcomes: Counter[str] = Counter()
        theirs = answers(lambda: build("4.9.8"), "PlainRules.java", cases)
        for case, answer in zip(cases, theirs, strict=True):
            found = ours(case)
            if not alike(found, answer):
                different.append((case, answer, found))
            words = answer.get("answers", ["not loaded"])
            outcomes.update(" ".join(each.split()[:3]) for each in words)
            outcomes.update(f"edit {each}" for each in answer.get("edits", ()))
        self.assertEqual(different[:2], [], f"{len(different)} of {len(cases)}")
        self.assertWorthIt(outcomes)

    def assertWorthIt(self, outcomes: Counter[str]) -> None:
        """The cases come to each end often enough."""
        for end in ("", "No default permission", "Check signature failed", "edit True"):
            self.assertGreater(outcomes[end], RULE_SETS // 20, end)
        for end in ("not loaded", "No acl config", "Need admin permission"):
            self.assertGreater(outcomes[end], RULE_SETS // 100, end)
        for end in ("No accessKey is", "edit threw", "edit False"):
            self.assertGreater(outcomes[end], RULE_SETS // 200, end)


def ours(case: Case, edition: Edition = Edition.V4_9) -> dict[str, Any]:
    """What our rules say of a case."""
    paths = [path for path in PATHS if path in case["files"]]
    try:
        documents = [read(path, case["files"][path]) for path in paths]
        Rules(documents, edition)
    except ConfigurationError:
        return {"loaded": False}
    edits: list[object] = []
    for edit in case["edits"]:
        try:
            documents = replaced(documents, edited(documents, edit))
            edits.append(True)
        except ValueError as error:
            refused = "failed." in str(error)
            edits.append(False if refused else "threw")
            if not refused:
                break
    rules = Rules(documents, edition)
    return {
        "loaded": True,
        "edits": edits,
        "documents": {each.path: without_times(each.members) for each in documents},
        "answers": [said(rules.decide(asked(each))) for each in case["requests"]],
    }


def edited(documents: Sequence[Document], edit: dict[str, Any]) -> Document:
    """The document that an operator's request changes."""
    if edit["kind"] == "delete":
        return without_account(documents, edit["accessKey"], 1)
    if edit["kind"] == "update":
        return with_account(documents, AccountChange.from_ext(edit), PATHS[1], 1)
    addresses = edit["globalWhiteAddrs"].split(",")
    return with_white_addresses(
        documents, addresses, edit["aclFileFullPath"] or PATHS[1], 1
    )


def without_times(members: Any) -> Any:
    """A document's members without the time of the last edit."""
    versions = [each["counter"] for each in members.get("dataVersion", ())]
    return {**members, "dataVersion": versions} if versions else members


def said(decision: Decision) -> str:
    """The words of a refusal, empty if it is none."""
    return decision.remark.removeprefix(EXCEPTION)


def alike(found: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether two answers are the same, but for which of several is named."""
    if not answer["loaded"]:
        return not found["loaded"]
    theirs = {**answer, "documents": {}}
    for path, members in answer["documents"].items():
        theirs["documents"][path] = without_times(members or {})
    without = {"answers": 0}
    return {**found, **without} == {**theirs, **without} and alike_decisions(
        found, answer
    )


def alike_decisions(found: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether all requests are allowed or refused alike, in the same words."""
    return all(
        mine == other or (LACKS.match(mine) and LACKS.match(other))
        for mine, other in zip(found["answers"], answer["answers"], strict=True)
    )


class PolicyRulesTests(SynchronousTestCase):
    """ACL 2.0: RocketMQ's classes beside ours."""

    def test_decisionsOfPolicies(self) -> None:
        """Those of 5.3.3: edits are done or refused alike and give the same users and
        policies; each request, and each call of gRPC, is allowed or refused in the
        same words."""
        self.compare("5.3.3", Release.V5_3)

    if HEAVY:

        def test_decisionsOfLaterPolicies(self) -> None:
            """The same with 5.5.0, whose order of entries is that of 5.4."""
            self.compare("5.5.0", Release.V5_4)

    def test_migration(self) -> None:
        """Accounts of ACL 1.0 become the same users and policies. Unknown permissions
        are left out: RocketMQ lets them allow everything."""
        made = PlainCases(SEED)
        texts = [readable(made.one(0)["files"][PATHS[1]]) for _ in range(MIGRATIONS)]
        cases = [
            {"edits": [{"kind": "migrate", "text": text}], "requests": [], "calls": []}
            for text in texts
        ]
        theirs = answers(lambda: f"{jars('5.3.3', 'broker')}/*", "Policies.java", cases)
        different = []
        for text, answer in zip(texts, theirs, strict=True):
            self.assertEqual(answer["edits"], [""], text)
            documents = migrated(Documents(), [read(PATHS[1], text)])
            if shown(documents) != {kind: answer[kind] for kind in ("users", "acls")}:
                different.append((text, answer, shown(documents)))
        self.assertEqual(different[:2], [], f"{len(different)} of {len(cases)}")
        self.assertGreater(sum(len(each["acls"]) for each in theirs), MIGRATIONS)

    def compare(self, version: str, release: Release) -> None:
        """Compare the rules of a release."""
        made = PolicyCases(SEED)
        cases = [made.one(REQUESTS, CALLS) for _ in range(RULE_SETS)]
        theirs = answers(lambda: f"{jars(version, 'broker')}/*", "Policies.java", cases)
        different = []
        outcomes: Counter[str] = Counter()
        for case, answer in zip(cases, theirs, strict=True):
            found = ours_of_policies(case, release)
            if not same_policies(case, found, answer):
                different.append((case, answer, found))
            for kind in ("edits", "requests", "calls"):
                outcomes.update(f"{kind} {kind_of(each)}" for each in answer[kind])
        self.assertEqual(different[:2], [], f"{len(different)} of {len(cases)}")
        for end in ("done", "no matched policies.", "the decision is deny."):
            for kind in ("requests", "calls"):
                self.assertGreater(outcomes[f"{kind} {end}"], RULE_SETS // 20, end)
        for end in ("is disabled.", "check signature failed.", "username cannot be"):
            for kind in ("requests", "calls"):
                self.assertGreater(outcomes[f"{kind} {end}"], RULE_SETS // 100, end)
        self.assertGreater(outcomes["edits done"], RULE_SETS)


#: Requests that name several resources in their bodies, in no order.
NAMED_IN_BODIES = (34, 41, 42)
NO_PERMISSION = "has no permission to access"

#: Permissions whose texts are unknown.
UNKNOWN = re.compile(r"\bpub\b|\bANY\b|PUB,SUB")

#: The ends of refusals.
ENDS = (
    *("no matched policies.", "the decision is deny.", "is disabled."),
    *("check signature failed.", "username cannot be", "is not found."),
)


def kind_of(words: str) -> str:
    """The kind of an outcome."""
    return next((end for end in ENDS if end in words), words) or "done"


def same_policies(case: Case, found: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether two answers are the same, but for which of several names in a body a
    refusal is about; Java puts brackets around IPv6 addresses."""
    theirs = {
        **answer,
        "requests": [
            re.sub(r"from \[(.*?)\]", r"from \1", each) for each in answer["requests"]
        ],
    }
    for at, request in enumerate(case["requests"]):
        pair = found["requests"][at], theirs["requests"][at]
        if request["code"] in NAMED_IN_BODIES and both_have(*pair, NO_PERMISSION):
            theirs["requests"][at] = pair[0]
    return found == theirs


def both_have(one: str, other: str, words: str) -> bool:
    """Whether both texts have some words."""
    return words in one and words in other


def readable(text: str) -> str:
    """A document of ACL 1.0 without unknown permissions, and as 5.3.3 reads it: without
    other members and with a truth in its place."""
    known = UNKNOWN.sub("SUB", text).partition("\nmore:")[0]
    return known.replace("admin: null", "admin: false") + "\n"


def ours_of_policies(case: Case, release: Release) -> dict[str, Any]:
    """What our rules of ACL 2.0 say of a case."""
    documents = Documents()
    edits = []
    for edit in case["edits"]:
        try:
            documents = edited_policies(documents, edit)
            edits.append("")
        except BrokerError as error:
            edits.append(error.remark if isinstance(error, NoPermission) else "threw")
    rules = PolicyRules(documents, PolicySettings(release=release, cluster="own"))
    return {
        **shown(documents),
        "calls": [decided_call(rules, each) for each in case["calls"]],
        "edits": edits,
        "requests": [rules.decide(asked_policies(r)).remark for r in case["requests"]],
    }


def shown(documents: Documents) -> dict[str, Any]:
    """All users and policies, as operators are shown them."""
    users = policy_edits.listed_users(documents, None)
    acls = policy_edits.listed_acls(documents, None, None)
    return {
        "users": [user_json(each) for each in users],
        "acls": [acl_json(each) for each in acls],
    }


def asked_policies(request: dict[str, Any]) -> Asked:
    """A request as the rules see it."""
    return asked({**request, "address": f"{request['source']}:54321"})


def edited_policies(documents: Documents, edit: dict[str, Any]) -> Documents:
    """What an operator's request makes of users and policies."""
    kind = edit["kind"]
    if kind in ("createAcl", "updateAcl"):
        info = AclInfo.from_json(edit["body"])
        return policy_edits.with_acl(documents, edit["subject"], info)
    if kind == "deleteAcl":
        policy_type, resource = edit.get("policyType"), edit.get("resource")
        return policy_edits.without_acl(
            documents, edit["subject"], policy_type, resource
        )
    if kind == "deleteUser":
        return policy_edits.without_user(documents, edit["username"], None)
    change = {
        "createUser": policy_edits.with_new_user,
        "updateUser": policy_edits.with_changed_user,
    }[kind]
    user = UserInfo.from_json(edit["body"])
    return change(documents, edit["username"], user, None)


def decided_call(rules: PolicyRules, call: dict[str, Any]) -> str:
    """The words of a refused call, empty if it is allowed."""
    message = getattr(messages_pb2, call["name"]).FromString(b64decode(call["message"]))
    name = full_name(message)
    try:
        signed = parse(call["authorization"], call["date"])
        found = rules.authenticate_call(name, signed)
        if not found.allowed:
            return found.remark
        wants = wanted_by_call(message)
    except NoPermission as error:
        return error.remark
    return rules.authorize_call(name, signed.access_key, wants, call["source"]).remark
