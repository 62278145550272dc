"""Random documents of ACL 1.0, edits of them, and requests."""

from __future__ import annotations

from base64 import b64encode
from random import Random
from typing import Any, TypeAlias

import yaml

from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.wire.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rocketbroker.wire.fastjson import dumps

#: The documents of a case, in the order in which they are found.
PATHS = ("conf/acl/more.yml", "conf/plain_acl.yml")

KEYS = ("RocketMQ", "rocketmq2", "account-3")
SECRET = "12345678"
TOPICS = ("T", "topicA", "%RETRY%G", "%RETRY%groupB", "%DLQ%G", "RMQ_SYS_TRACE_TOPIC")
GROUPS = ("G", "groupB", "%RETRY%G")
PERMS = ("PUB", "SUB", "PUB|SUB", "SUB|PUB", "DENY", " PUB ", "pub", "ANY", "PUB,SUB")

CODES = (10, 310, 320, 370, 36, 11, 12, 34, 35, 38, 15, 14, 17, 25, 200, 207, 215)
OTHER_CODES = (513, 50, 51, 52, 41, 105, 361, 200050)

SOURCES = ("10.0.0.1", "10.0.0.2", "10.0.1.1", "10.1.0.1", "192.168.7.99")
SOURCES6 = ("0:0:0:0:0:0:0:1", "fe80:0:0:0:0:0:5:1f", "fe80:0:a:0:0:0:0:2")

Case: TypeAlias = dict[str, Any]


class PlainCases:
    """Makes them. Few patterns are wrong, or else hardly a document would be taken."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def one(self, requests: int) -> Case:
        """Documents, edits, and some requests."""
        random = self._random
        paths = PATHS if random.random() < 0.3 else PATHS[1:]
        # RocketMQ forgets for a moment that another file has an account, too, that was
        # removed from one: of several files only one is edited.
        edits = random.choice((0, 0, 0, 1, 2 if len(paths) == 1 else 1))
        return {
            "files": {path: self._text() for path in paths},
            "edits": [self._edit(paths) for _ in range(edits)],
            "requests": [self._request() for _ in range(requests)],
        }

    def _text(self) -> str:
        random = self._random
        if random.random() < 0.03:
            return random.choice(("", "# nothing\n", "accounts: []\n"))
        document: dict[str, Any] = {}
        if random.random() < 0.4:
            count = random.randrange(3)
            document["globalWhiteRemoteAddresses"] = [
                self._pattern() for _ in range(count)
            ]
        document["accounts"] = [
            self._account(key)
            for key in random.sample(KEYS, random.choice((1, 2, 3, 3)))
        ]
        if random.random() < 0.3:
            document["dataVersion"] = [{"counter": 7, "timestamp": 1700000000000}]
        if random.random() < 0.1:
            document["more"] = {"kept": [1, "x"]}
        text: str = yaml.safe_dump(document, sort_keys=False)
        return text

    def _account(self, key: str) -> dict[str, Any]:
        random = self._random
        account: dict[str, Any] = {
            "accessKey": key if random.random() < 0.995 else "short",
            "secretKey": random.choice((SECRET, int(SECRET))),
        }
        if random.random() < 0.3:
            account["whiteRemoteAddress"] = random.choice((None, "", self._pattern()))
        if random.random() < 0.5:
            account["admin"] = random.choice((True, False, "true", None))
        for name in ("defaultTopicPerm", "defaultGroupPerm"):
            if random.random() < 0.6:
                account[name] = random.choice(PERMS)
        if random.random() < 0.6:
            account["topicPerms"] = self._perms(TOPICS)
        if random.random() < 0.6:
            account["groupPerms"] = self._perms(GROUPS)
        return account

    def _perms(self, names: tuple[str, ...]) -> list[str]:
        random = self._random
        perms = [
            f"{random.choice(names)}={random.choice(PERMS)}"
            for _ in range(random.randrange(4))
        ]
        if random.random() < 0.01:
            perms.append(random.choice(("T", "T=PUB=SUB", "=PUB", "T==PUB", " T =PUB")))
        return perms

    def _pattern(self) -> str:
        random = self._random
        if random.random() < 0.02:
            wrong = (
                "10.0.*",
                "host",
                "10.0.0.1-",
                "10.0.0.300",
                "fe80::*:1",
                "1::2::3",
            )
            return random.choice(wrong)
        if random.random() < 0.25:
            return self._pattern6()
        parts = random.choice(SOURCES).split(".")
        chance = random.random()
        if chance < 0.3:
            return ".".join(parts)
        if chance < 0.4:
            return random.choice(("", " ", "*", "*.*.*.*"))
        if chance < 0.55:
            return ".".join(parts[:3]) + random.choice((".{1,2}", ".{1}", ".{2,99}"))
        if chance < 0.65:
            return ",".join(random.sample(SOURCES + SOURCES6, 2))
        for at in range(random.randrange(1, 4), 4):
            parts[at] = random.choice(("*", "*", "0-1", "1-200", "2-98", parts[at]))
        if not {"*", "-"} & set("".join(parts[1:])):
            parts[3] = "1-2"
        return ".".join(parts)

    def _pattern6(self) -> str:
        patterns = ("::1", "fe80::5:1f", "FE80::5:1F", "fe80::5:{1f,2}", "fe80::*")
        more = ("fe80::5:1-2f", "fe80::a-b:*", "fe80:0:a::*", "fe80:0:1-f:*")
        return self._random.choice((*patterns, *more, *SOURCES6))

    def _edit(self, paths: tuple[str, ...]) -> dict[str, Any]:
        random = self._random
        key = random.choice((*KEYS, "newcomer1"))
        kind = random.choice(("update", "update", "delete", "white"))
        if kind == "delete":
            return {"kind": kind, "accessKey": key}
        if kind == "white":
            addresses = ",".join(random.sample(SOURCES, random.randrange(3)))
            path = random.choice(("", *paths))
            return {
                "kind": kind,
                "globalWhiteAddrs": addresses,
                "aclFileFullPath": path,
            }
        account = self._account(key)
        edit = {"kind": kind, "accessKey": key, "secretKey": str(account["secretKey"])}
        for name in ("whiteRemoteAddress", "defaultTopicPerm", "defaultGroupPerm"):
            if account.get(name) is not None:
                edit[name] = account[name]
        for name in ("topicPerms", "groupPerms"):
            if name in account:
                edit[name] = ",".join(account[name])
        if account.get("admin") is not None:
            edit["admin"] = str(account["admin"]).lower()
        return edit

    def _request(self) -> dict[str, Any]:
        random = self._random
        code = random.choice(CODES if random.random() < 0.9 else OTHER_CODES)
        fields = {
            name: random.choice(names)
            for name, names in (
                ("topic", TOPICS),
                ("b", TOPICS),
                ("group", GROUPS),
                ("a", GROUPS),
                ("consumerGroup", GROUPS),
            )
            if random.random() < 0.9
        }
        if random.random() < 0.1:
            fields["_UNIQUE_KEY_QUERY"] = "true"
        body = self._heartbeat() if code == 34 else random.choice((b"", b"body"))
        source = random.choice(SOURCES if random.random() < 0.8 else SOURCES6)
        return {
            "code": code,
            "version": random.choice((399, 400, 479)),
            "fields": self._signed(fields, body),
            "body": b64encode(body).decode("ascii"),
            "address": f"{source}:54321",
        }

    def _signed(self, fields: dict[str, str], body: bytes) -> dict[str, str] | None:
        """Mostly as an account signs it."""
        random = self._random
        chance = random.random()
        if chance < 0.02:
            return None
        if chance < 0.05:
            return fields
        key = random.choice(KEYS) if random.random() < 0.95 else "stranger"
        secret = SECRET if random.random() < 0.95 else "87654321"
        token = "token" if random.random() < 0.1 else None
        if random.random() < 0.7:
            fields.pop("_UNIQUE_KEY_QUERY", None)
        signed = sign(fields, body, Credentials(key, secret, token))
        if random.random() < 0.03:
            del signed["Signature"]
        if random.random() < 0.05:
            signed["_UNIQUE_KEY_QUERY"] = "true"
        return signed

    def _heartbeat(self) -> bytes:
        random = self._random
        consumers = [
            ConsumerData(
                group_name=random.choice(GROUPS),
                subscription_data_set=[
                    SubscriptionData(topic=random.choice(TOPICS))
                    for _ in range(random.randrange(3))
                ],
            )
            for _ in range(random.randrange(3))
        ]
        return dumps(HeartbeatData(client_id="c", consumer_data_set=consumers))
