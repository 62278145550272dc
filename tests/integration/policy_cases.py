"""Random users and policies of ACL 2.0, requests, and calls of gRPC."""

from __future__ import annotations

from base64 import b64encode
from random import Random
from typing import Any, TypeAlias

from rocketbroker.auth import grpc_signatures
from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.wire.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rocketbroker.wire.bodies.queues import LockBatchBody, MessageQueue
from rocketbroker.wire.fastjson import dumps

USERS = ("alice", "bob", "carol")
SECRET = "12345678"
NAMES = ("T", "Ta", "Tab", "G", "Ga", "Gab", "own", "other")
TOPICS = (*NAMES[:3], "%RETRY%G", "%RETRY%Gab", "%DLQ%G", "%RETRY%G+T")
GROUPS = (*NAMES[3:6], "%RETRY%Ga")
RESOURCES = (
    *("*", "Topic:*", "Group:*", "Cluster:*", "Any:x", "Topic:T", "Topic:Ta"),
    *("Topic:Tab", "topic:T*", "Topic:Ta*", "Topic:Tab*", "Topic:%DLQ%*", "Group:G"),
    *("Group:Ga", "Group:G*", "Group:Ga*", "GROUP:Gab*", "Cluster:own", "Cluster:o*"),
)
WRONG_RESOURCES = ("", "T", "Topics:T", "Topic:", "Topic:a*b", "Topic:a*b*")
ACTIONS = ("Pub", "sub", "All", "Create", "UPDATE", "Delete", "Get", "List")
SOURCES = (
    "10.0.0.1",
    "10.0.7.1",
    "192.168.7.99",
    "0:0:0:0:0:0:0:1",
    "fe80:0:0:0:0:0:5:1",
)
#: Resources that all have the topic Tab.
CROWD = ("*", "Any:x", *(f"Topic:{n}" for n in ("*", "T*", "Ta*", "Tab*", "Tab")))
NETWORKS = (
    *SOURCES[:3],
    "10.0.0.0/24",
    "10.0.0.0/8",
    "::/64",
    "fe80::/10",
    "10.0.0.9/31",
)

FIELDS = (
    *(("topic", TOPICS), ("b", TOPICS), ("group", GROUPS), ("a", GROUPS)),
    *(("consumerGroup", GROUPS), ("groupName", GROUPS), ("destGroup", GROUPS)),
    *(("compareGroup", GROUPS), ("filterGroups", ("G,Ga", "Gab", ",G,"))),
    *(("topicList", ("T;Ta", "%RETRY%G", ";")), ("clusterName", ("own", "other"))),
    ("brokerClusterName", ("own", "other")),
)

#: All codes of the table, more often those that make the load.
CODES = (
    *((10, 310, 320, 11, 34, 14, 15, 41, 42, 105) * 4),
    *(12, 17, 18, 21, 25, 26, 29, 30, 31, 32, 33, 35, 36, 37, 38, 43, 46),
    *(100, 101, 102, 103, 104, 106, 200, 201, 202, 203, 204, 205, 207, 208, 215, 216),
    *(217, 219, 222, 223, 224, 225, 300, 303, 307, 308, 309, 314, 315, 317, 321, 322),
    *(323, 324, 327, 328, 343, 345, 351, 352, 353, 354, 355, 361, 370, 400, 513, 901),
    *(902, 903, 904, 905, 906, 908, 1001, 1002, 1003, 1004, 1008, 1011, 1012, 1013),
    *range(3001, 3011),
    *(200050, 200051, 200052, 200053, 200054, 200055, 200056, 200151),
)

Case: TypeAlias = dict[str, Any]


class PolicyCases:
    """Makes them: mostly such as operators would, so that rules take effect."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def one(self, requests: int, calls: int) -> Case:
        """Edits, some requests and calls."""
        random = self._random
        if random.random() < 0.25:
            return self._crowd(requests)
        edits = [self._new_user(name) for name in USERS if random.random() < 0.93]
        edits += [self._acl() for _ in range(random.randrange(2, 8))]
        edits += [self._other_edit() for _ in range(random.choice((0, 0, 1, 2)))]
        if random.random() < 0.2:
            random.shuffle(edits)
        return {
            "edits": edits,
            "requests": [self._request() for _ in range(requests)],
            "calls": [self._call() for _ in range(calls)],
        }

    def _crowd(self, requests: int) -> Case:
        """Policies of which many entries match, and of which one decides; what is kept
        first may have several about one resource."""
        edits: list[dict[str, Any]] = []
        asked = []
        for number in range(requests):
            name = f"user{number}"
            entries = [self._crowded() for _ in range(self._random.randrange(2, 12))]
            body = {"policies": [{"entries": entries}]}
            edits.append(
                {"kind": "createUser", "username": name, "body": {"password": SECRET}}
            )
            edits.append({"kind": "createAcl", "subject": f"User:{name}", "body": body})
            fields = sign({"topic": "Tab"}, b"", Credentials(name, SECRET))
            asked.append(self._asked(10, fields, b""))
        return {"edits": edits, "requests": asked, "calls": []}

    def _crowded(self) -> dict[str, Any]:
        """An entry that matches."""
        return {
            "resource": self._random.choice(CROWD),
            "actions": ["All"],
            "decision": self._random.choice(("Allow", "Deny")),
        }

    def _new_user(self, name: str) -> dict[str, Any]:
        random = self._random
        body: dict[str, str | None] = {"password": SECRET}
        if random.random() < 0.4:
            body["userType"] = random.choice(("Normal", "normal", "Super", "strange"))
        if random.random() < 0.2:
            body["userStatus"] = random.choice(("enable", "DISABLE", "strange"))
        return {"kind": "createUser", "username": name, "body": body}

    def _other_edit(self) -> dict[str, Any]:
        random = self._random
        name = random.choice((*USERS, "stranger", " "))
        kind = random.choice(("createUser", "updateUser", "deleteUser", "deleteAcl"))
        if kind == "deleteUser":
            return {"kind": kind, "username": name}
        if kind == "deleteAcl":
            edit: dict[str, Any] = {
                "kind": kind,
                "subject": random.choice((f"User:{name}", f"x{name}")),
            }
            if random.random() < 0.8:
                edit["resource"] = random.choice((*RESOURCES, *WRONG_RESOURCES))
            if random.random() < 0.5:
                edit["policyType"] = random.choice(("Custom", "DEFAULT", "strange"))
            return edit
        edit = {**self._new_user(name), "kind": kind}
        if random.random() < 0.3:
            edit["body"]["password"] = random.choice((None, "", " ", "other"))
        return edit

    def _acl(self) -> dict[str, Any]:
        random = self._random
        subject = f"User:{random.choice((*USERS, *USERS, 'stranger'))}"
        body: dict[str, Any] = {
            "policies": [self._policy() for _ in range(random.choice((1, 1, 2)))]
        }
        if random.random() < 0.3:
            body["subject"] = subject
            subject = random.choice((subject, "User:bob", "strange"))
        kind = random.choice(("createAcl", "updateAcl"))
        return {"kind": kind, "subject": subject, "body": body}

    def _policy(self) -> dict[str, Any]:
        random = self._random
        count = random.choice((0, 1, 2, 3, 4, 5, 9))
        policy: dict[str, Any] = {"entries": [self._entry() for _ in range(count)]}
        if random.random() < 0.6:
            kinds = ("Custom", "default", "Default", "strange")
            policy["policyType"] = random.choice(kinds)
        return policy

    def _entry(self) -> dict[str, Any]:
        random = self._random
        good = random.random() < 0.98
        resources = RESOURCES if good else WRONG_RESOURCES
        actions = random.sample(ACTIONS, random.choice((1, 2, 3)))
        if random.random() < 0.02:
            actions = random.choice(([], ["Any"], ["strange"], ["Pub", "strange"]))
        entry: dict[str, Any] = {
            "resource": random.choice(resources),
            "actions": actions,
            "decision": random.choice(("Allow", "allow", "Deny")),
        }
        if random.random() < 0.25:
            entry["sourceIps"] = random.sample(NETWORKS, random.randrange(3))
        if random.random() < 0.01:
            entry["sourceIps"] = [random.choice((" ", "10.0.0.0/33", "a/8"))]
        if random.random() < 0.01:
            entry["decision"] = random.choice((None, "strange"))
        return entry

    def _request(self) -> dict[str, Any]:
        random = self._random
        code = random.choice(CODES)
        fields = {
            name: random.choice(names)
            for name, names in FIELDS
            if random.random() < 0.9
        }
        # Without these, RocketMQ's headers of 17 and 1002 are none, or another one.
        fields["topicFilterType"] = "SINGLE_TAG"
        fields.setdefault("clusterName", "own")
        if random.random() < 0.05:
            fields["_UNIQUE_KEY_QUERY"] = "true"
        body = self._body(code)
        return self._asked(code, self._signed(fields, body), body)

    def _asked(
        self, code: int, fields: dict[str, str] | None, body: bytes
    ) -> dict[str, Any]:
        """A request with these fields."""
        return {
            "code": code,
            "version": self._random.choice((399, 400, 479)),
            "fields": fields,
            "body": b64encode(body).decode("ascii"),
            "source": self._random.choice(SOURCES),
        }

    def _signed(self, fields: dict[str, str], body: bytes) -> dict[str, str] | None:
        """Mostly as a user signs it."""
        random = self._random
        chance = random.random()
        if chance < 0.01:
            return None
        if chance < 0.03:
            return fields
        signed = sign(fields, body, self._credentials())
        if random.random() < 0.02:
            del signed["Signature"]
        return signed

    def _credentials(self) -> Credentials:
        random = self._random
        name = random.choice(USERS) if random.random() < 0.97 else "stranger"
        return Credentials(name, SECRET if random.random() < 0.97 else "87654321")

    def _body(self, code: int) -> bytes:
        random = self._random
        if code == 34:
            consumers = [
                ConsumerData(
                    group_name=random.choice(GROUPS),
                    subscription_data_set=[
                        SubscriptionData(topic=random.choice(TOPICS))
                        for _ in range(random.randrange(3))
                    ],
                )
                for _ in range(random.randrange(2))
            ]
            return dumps(HeartbeatData(client_id="c", consumer_data_set=consumers))
        if code in (41, 42):
            queues = [
                MessageQueue(random.choice(TOPICS), "b", at)
                for at in range(random.randrange(3))
            ]
            group = random.choice(GROUPS)
            return dumps(
                LockBatchBody(client_id="c", consumer_group=group, mq_set=queues)
            )
        return random.choice((b"", b"body"))

    def _call(self) -> dict[str, Any]:
        random = self._random
        message = self._message()
        credentials = self._credentials()
        headers: dict[str, str | None] = {
            **grpc_signatures.sign(credentials, "20210309T195445Z")
        }
        if random.random() < 0.04:
            wrong = (None, "", "x", "x Credential=bob", "x a", "x Signature=z", "x ,")
            headers["authorization"] = random.choice(wrong)
        if random.random() < 0.02:
            headers["x-mq-date-time"] = random.choice((None, "20210309T195446Z"))
        return {
            "name": type(message).__name__,
            "message": b64encode(message.SerializeToString()).decode("ascii"),
            "authorization": headers["authorization"],
            "date": headers["x-mq-date-time"],
            "source": random.choice(SOURCES),
            "user": credentials.access_key,
        }

    def _message(self) -> Any:
        random = self._random
        topic = pb.Resource(name=self._name(TOPICS))
        group = pb.Resource(name=self._name(GROUPS))
        queue = pb.MessageQueue(topic=topic)
        client = pb.ClientType.Name(random.randrange(5))
        both = (
            pb.AckMessageRequest,
            pb.ForwardMessageToDeadLetterQueueRequest,
            pb.QueryAssignmentRequest,
        )
        kinds: list[Any] = [kind(topic=topic, group=group) for kind in both]
        kinds += [
            kind(topic=topic)
            for kind in (
                pb.EndTransactionRequest,
                pb.QueryRouteRequest,
                pb.RecallMessageRequest,
            )
        ]
        kinds += [
            pb.ChangeInvisibleDurationRequest(topic=topic, group=group),
            pb.NotifyClientTerminationRequest(group=group),
            pb.HeartbeatRequest(group=group, client_type=client),
            pb.ReceiveMessageRequest(group=group, message_queue=queue),
            pb.ReceiveMessageRequest(group=group),
            pb.SendMessageRequest(messages=[pb.Message(topic=topic)]),
            pb.SendMessageRequest(messages=[pb.Message(topic=topic)]),
            pb.SendMessageRequest(),
            self._telemetry(topic, group),
        ]
        return random.choice(kinds)

    def _telemetry(self, topic: pb.Resource, group: pb.Resource) -> pb.TelemetryCommand:
        kind = self._random.randrange(4)
        if kind == 0:
            return pb.TelemetryCommand()
        settings = pb.Settings()
        if kind == 1:
            settings.publishing.topics.append(topic)
        elif kind == 2:
            settings.subscription.group.CopyFrom(group)
            settings.subscription.subscriptions.add(topic=topic)
        return pb.TelemetryCommand(settings=settings)

    def _name(self, names: tuple[str, ...]) -> str:
        return self._random.choice(names) if self._random.random() < 0.97 else " "
