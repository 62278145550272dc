# -*- test-case-name: tests.broker.access.test_policy_access -*-
"""ACL 2.0 of a broker: the hook before its requests, its table, requests 3001 to 3010.

Users and policies stand in one JSON file beside the other tables, which nobody else may
read: passwords are the keys of signatures, and stand in it as they are.

C{docs/facts/security-metrics.md} 3. RocketMQ answers passwords to whoever may read
users; here only super users see them, whose tools copy users from broker to broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import implementer

from rocketbroker.auth import policy_edits
from rocketbroker.auth.decision import Decision
from rocketbroker.auth.entries import Action, named
from rocketbroker.auth.policies import PolicySettings, Rules
from rocketbroker.auth.policy_documents import (
    AclInfo,
    UserInfo,
    acl_json,
    acls_json,
    from_json,
    user_json,
    users_json,
)
from rocketbroker.auth.request import ACCESS_KEY, Asked
from rocketbroker.auth.resources import Resource
from rocketbroker.auth.signatures import Credentials
from rocketbroker.auth.users import Documents, User, UserType
from rocketbroker.auth.wanted import Want
from rocketbroker.broker.access.explanations import answer_of, refusal_line
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.errors import (
    ConfigurationError,
    InvalidParameter,
    NoPermission,
    RemoteProtocolError,
)
from rocketbroker.remoting.audit_line import MAX_SHOWN
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.remoting.request_hooks import IRequestHook, source_of
from rocketbroker.wire import fastjson
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

#: The file, and its members.
FILE: Final = "access.json"
USERS: Final = "users"
ACLS: Final = "acls"


@final
@implementer(IRequestHook)
class PolicyAccess:
    """The users of a broker, and their policies.

    @ivar documents: they, as they are.
    @ivar refused: how many requests were refused.
    @ivar has_new: whether the start has made users or policies that the table on the
        disk does not have yet.
    """

    codes = None
    wants_answers = False
    _log = Logger()

    def __init__(
        self,
        file: JsonTable,
        settings: PolicySettings,
        first: Sequence[Credentials | None],
        migrate: Callable[[Documents], Documents],
        refusals: RefusalLog,
    ) -> None:
        """
        @param first: the credentials of C{initAuthenticationUser} and of
            C{innerClientAuthenticationCredentials}.
        @param migrate: adds users for the accounts of ACL 1.0; it blocks.
        @param refusals: tells the log of them.
        """
        self.documents = Documents()
        self.refused = 0
        self.has_new = False
        self._rules = Rules(self.documents, settings)
        self._file = file
        self._settings = settings
        self._first = first
        self._migrate = migrate
        self._refusals = refusals

    # The hook.

    def before(self, connection: IConnection, asked: Asked) -> None:
        """See L{IRequestHook.before}."""
        decision = self._rules.decide(asked)
        if not decision.allowed:
            self.refused += 1
            self._refusals.say(refusal_line(connection, asked, decision))
            raise decision.error()
        connection.user = asked.access_key or ""

    def after(
        self, connection: IConnection, asked: Asked, answer: Command | None
    ) -> None:
        """See L{IRequestHook.after}; nothing."""

    # The table.

    def load(self) -> None:
        """I{Blocking.} Read the table, and make the users that settings ask for.

        @raise ConfigurationError: it cannot be read; one sentence.
        """
        found = self._file.load_required("users and policies") or {}
        try:
            documents = from_json(found.get(USERS, []), found.get(ACLS, []))
        except RemoteProtocolError as error:
            raise ConfigurationError(
                f"{self._file.path}: users and policies make no sense: {error}."
            ) from error
        complete = policy_edits.with_first_users(self._migrate(documents), *self._first)
        self.has_new = complete != documents
        self._take(complete)
        settings = self._settings
        if settings.authorization and not settings.authentication:
            self._log.warn(
                "authorizationEnabled without authenticationEnabled: anybody who names "
                "a user may do what that user may."
            )
        if not self.documents.users:
            self._log.warn(
                "Users are asked for, and there are none: everybody is refused. "
                "initAuthenticationUser makes the first one."
            )

    def save(self) -> Deferred[None]:
        """Write the table; fires when that is done."""
        return self._file.save_soon(self._json)

    def _json(self) -> dict[str, object]:
        documents = self.documents
        return {USERS: users_json(documents), ACLS: acls_json(documents)}

    def _take(self, documents: Documents) -> None:
        self.documents = documents
        self._rules = Rules(documents, self._settings)

    # Requests of administrators.

    def register(self, table: IResponderTable) -> None:
        """Answer them at a port."""
        table.register(RequestCode.AUTH_CREATE_USER, self._create_user)
        table.register(RequestCode.AUTH_UPDATE_USER, self._update_user)
        table.register(RequestCode.AUTH_DELETE_USER, self._delete_user)
        table.register(RequestCode.AUTH_GET_USER, self._get_user)
        table.register(RequestCode.AUTH_LIST_USER, self._list_users)
        table.register(RequestCode.AUTH_CREATE_ACL, self._write_acl)
        table.register(RequestCode.AUTH_UPDATE_ACL, self._write_acl)
        table.register(RequestCode.AUTH_DELETE_ACL, self._delete_acl)
        table.register(RequestCode.AUTH_GET_ACL, self._get_acl)
        table.register(RequestCode.AUTH_LIST_ACL, self._list_acls)
        table.register(RequestCode.EXPLAIN_ACCESS, self._explain)

    def _create_user(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        name, login = _field(request, "username"), _login(request)
        info = UserInfo.from_json(_json_of(request))
        documents = policy_edits.with_new_user(self.documents, name, info, login)
        return self._edited(connection, request, documents, f"created the user {name}")

    def _update_user(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        name, login = _field(request, "username"), _login(request)
        info = UserInfo.from_json(_json_of(request))
        documents = policy_edits.with_changed_user(self.documents, name, info, login)
        return self._edited(connection, request, documents, f"changed the user {name}")

    def _delete_user(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        name = _field(request, "username")
        documents = policy_edits.without_user(self.documents, name, _login(request))
        return self._edited(connection, request, documents, f"removed the user {name}")

    def _write_acl(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        subject = _field(request, "subject") or None
        info = AclInfo.from_json(_json_of(request))
        documents = policy_edits.with_acl(self.documents, subject, info)
        said = bytes(request.body or b"").decode("utf-8", "replace")
        words = f"set policies of {info.subject or subject}: {said}"
        return self._edited(connection, request, documents, words)

    def _delete_acl(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        ext = request.ext or {}
        subject, resource = ext.get("subject"), ext.get("resource")
        documents = policy_edits.without_acl(
            self.documents, subject, ext.get("policyType"), resource
        )
        words = f"removed policies of {subject} about {resource or 'everything'}"
        return self._edited(connection, request, documents, words)

    def _edited(
        self,
        connection: IConnection,
        request: Command,
        documents: Documents,
        words: str,
    ) -> Deferred[Command | None]:
        """Take a change, and answer when it is on the disk.

        @param words: what was done, for the log.
        """
        self._take(documents)
        self._log.info("{who} {words}.", who=connection.who, words=words[:MAX_SHOWN])

        def kept(_: None) -> Command | None:
            self._file.check(None)
            return response_to(request)

        return self.save().addCallback(kept)

    def _get_user(self, connection: IConnection, request: Command) -> Command:
        user = policy_edits.user_of(self.documents, _field(request, "username"))
        if user is None:
            return response_to(request)
        return response_to(request, body=fastjson.dumps(self._shown(user, request)))

    def _list_users(self, connection: IConnection, request: Command) -> Command:
        users = policy_edits.listed_users(self.documents, _field(request, "filter"))
        if not users:
            return response_to(request)
        shown = [self._shown(user, request) for user in users]
        return response_to(request, body=fastjson.dumps(shown))

    def _shown(self, user: User, request: Command) -> dict[str, object]:
        """A user; only super users see the password."""
        found = user_json(user)
        if not self._is_super(_login(request)):
            found.pop("password", None)
        return found

    def _is_super(self, login: str | None) -> bool:
        user = self.documents.users.get(login or "")
        return user is not None and user.type is UserType.SUPER

    def _get_acl(self, connection: IConnection, request: Command) -> Command:
        acl = policy_edits.acl_of(self.documents, (request.ext or {}).get("subject"))
        if acl is None:
            return response_to(request)
        return response_to(request, body=fastjson.dumps(acl_json(acl)))

    def _list_acls(self, connection: IConnection, request: Command) -> Command:
        ext = request.ext or {}
        acls = policy_edits.listed_acls(
            self.documents, ext.get("subjectFilter"), ext.get("resourceFilter")
        )
        if not acls:
            return response_to(request)
        return response_to(request, body=fastjson.dumps([acl_json(a) for a in acls]))

    def _explain(self, connection: IConnection, request: Command) -> Command:
        """Request 31012: which rule decides; about others only for super users."""
        login = _login(request)
        user = _field(request, "user") or login
        if user != login and not self._is_super(login):
            raise NoPermission("Only super users ask about others.")
        decision = self._decision(request, user, source_of(connection))
        return answer_of(request, user, decision, "2.0")

    def _decision(self, request: Command, user: str | None, source: str) -> Decision:
        text, action = _field(request, "resource"), _field(request, "action")
        if not text:
            if user is None:
                return Decision.allow("nobody has signed")
            found = self.documents.users.get(user)
            kind = "unknown" if found is None else found.type.value
            return Decision.allow(f"user {user}: {kind}")
        resource, wanted = Resource.parse(text), named(Action, action)
        if resource is None or wanted is None:
            raise InvalidParameter(
                "resource is Topic:NAME, Group:NAME or Cluster:NAME, and action one of "
                + ", ".join(each.value for each in Action)
            )
        if not self._settings.authorization:
            return Decision.allow("authorizationEnabled is off: all users may")
        return self._rules.may(user, Want(resource, (wanted,)), source)


def _field(request: Command, name: str) -> str:
    return (request.ext or {}).get(name, "")


def _login(request: Command) -> str | None:
    return _field(request, ACCESS_KEY) or None


def _json_of(request: Command) -> object:
    return fastjson.loads(request.body or b"{}")
