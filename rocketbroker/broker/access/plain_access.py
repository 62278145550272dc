# -*- test-case-name: tests.broker.access.test_plain_access -*-
"""ACL 1.0 of a broker (aclEnable): the hook before its requests, and requests 50 to 54.

C{docs/facts/security-metrics.md} 2; the answers are those of 4.9.8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import implementer

from rocketbroker.auth.permissions import NOTHING, PUB, SUB, Needed
from rocketbroker.auth.plain_documents import Document
from rocketbroker.auth.plain_edits import (
    AccountChange,
    listed,
    versions,
    with_account,
    with_white_addresses,
    without_account,
)
from rocketbroker.auth.request import ACCESS_KEY, Asked
from rocketbroker.broker.access.explanations import answer_of, refusal_line
from rocketbroker.broker.access.plain_files import PlainFiles
from rocketbroker.broker.background_work import InThread
from rocketbroker.errors import ConfigurationError, InvalidParameter, NoPermission
from rocketbroker.records.names import retry_topic
from rocketbroker.remoting.audit_line import MAX_SHOWN
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.remoting.request_hooks import IRequestHook
from rocketbroker.wire import fastjson
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

#: Requests of 4.9 for which RequestCode has other names, or none.
UPDATE_GLOBAL_WHITE_ADDRESSES: Final = 53
GET_ACL_CONFIG: Final = 54

#: How these requests fail, by what they change.
ACCOUNT_FAILED: Final = 209
DELETION_FAILED: Final = 210
ADDRESSES_FAILED: Final = 211


@final
@implementer(IRequestHook)
class PlainAccess:
    """The accounts of a broker.

    @ivar refused: how many requests were refused.
    """

    codes = None
    wants_answers = False
    _log = Logger()

    def __init__(
        self,
        files: PlainFiles,
        in_thread: InThread,
        wall_ms: Callable[[], int],
        place: Mapping[str, str],
        refusals: RefusalLog,
    ) -> None:
        """
        @param place: name, address and cluster of this broker, as request 52 answers
            them.
        @param refusals: tells the log of them.
        """
        self.refused = 0
        self._files = files
        self._in_thread = in_thread
        self._wall_ms = wall_ms
        self._place = place
        self._refusals = refusals

    # The hook.

    def before(self, connection: IConnection, asked: Asked) -> None:
        """See L{IRequestHook.before}."""
        decision = self._files.rules.decide(asked)
        if not decision.allowed:
            self.refused += 1
            self._refusals.say(refusal_line(connection, asked, decision))
            raise decision.error()
        connection.user = asked.access_key or ""

    def after(
        self, connection: IConnection, asked: Asked, answer: Command | None
    ) -> None:
        """See L{IRequestHook.after}; nothing."""

    # The files.

    def load(self) -> None:
        """I{Blocking.} Read the files.

        @raise ConfigurationError: one is not in order; one sentence.
        """
        self._files.load()
        self._tell([])
        if not self._files.documents:
            self._log.warn(
                "aclEnable=true, and there are no accounts: everybody is refused until "
                "{path} is there.",
                path=self._files.default,
            )

    def look(self) -> Deferred[None]:
        """Take files that have changed."""
        return self._in_thread(self._files.look).addCallback(self._looked)

    def _looked(self, problems: list[str] | None) -> None:
        if problems is not None:
            self._log.info("The accounts of ACL 1.0 were read again.")
            self._tell(problems)

    def _tell(self, problems: list[str]) -> None:
        for sentence in problems:
            self._log.error("ACL 1.0: {sentence}", sentence=sentence)
        for sentence in self._files.rules.ignored:
            self._log.warn("ACL 1.0: {sentence}, and is ignored.", sentence=sentence)

    # Requests of administrators.

    def register(self, table: IResponderTable) -> None:
        """Answer them at a port."""
        table.register(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, self._update)
        table.register(RequestCode.DELETE_ACL_CONFIG, self._delete)
        table.register(RequestCode.GET_BROKER_CLUSTER_ACL_INFO, self._versions)
        table.register(UPDATE_GLOBAL_WHITE_ADDRESSES, self._update_addresses)
        table.register(GET_ACL_CONFIG, self._list)
        table.register(RequestCode.EXPLAIN_ACCESS, self._explain)

    def _update(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        change = AccountChange.from_ext(request.ext or {})
        return self._edit(
            connection,
            request,
            ACCOUNT_FAILED,
            f"changed the account {change.access_key[:MAX_SHOWN]}",
            lambda documents: with_account(
                documents, change, self._files.default, self._wall_ms()
            ),
        )

    def _delete(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        key = (request.ext or {}).get("accessKey", "")
        return self._edit(
            connection,
            request,
            DELETION_FAILED,
            f"removed the account {key[:MAX_SHOWN]}",
            lambda documents: without_account(documents, key, self._wall_ms()),
        )

    def _update_addresses(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        ext = request.ext or {}
        addresses = ext.get("globalWhiteAddrs", "")
        path = ext.get("aclFileFullPath") or self._files.default
        return self._edit(
            connection,
            request,
            ADDRESSES_FAILED,
            f"set globalWhiteRemoteAddresses={addresses[:MAX_SHOWN]}",
            lambda documents: with_white_addresses(
                documents, addresses.split(","), path, self._wall_ms()
            ),
        )

    def _edit(
        self,
        connection: IConnection,
        request: Command,
        failed: int,
        words: str,
        edited: Callable[[Sequence[Document]], Document],
    ) -> Deferred[Command | None]:
        """Change a file.

        @param failed: the code if it cannot be.
        @param words: what is done, for the log.
        """

        def edit() -> str | None:
            try:
                self._files.write(edited)
            except (ValueError, ConfigurationError, OSError) as error:
                return str(error)
            return None

        def answered(problem: str | None) -> Command | None:
            if problem is not None:
                return response_to(request, failed, problem[:MAX_SHOWN])
            self._log.info("{who} {words}.", who=connection.who, words=words)
            return response_to(request)

        return self._in_thread(edit).addCallback(answered)

    def _versions(self, connection: IConnection, request: Command) -> Command:
        found = versions(self._files.documents)
        default = found.get(self._files.default, {"counter": 0, "timestamp": 0})
        ext = {
            "version": fastjson.dumps(default).decode(),
            "allAclFileVersion": fastjson.dumps(found).decode(),
            **self._place,
        }
        return response_to(request, ext=ext)

    def _explain(self, connection: IConnection, request: Command) -> Command:
        """Request 31012: which rule decides; about others only for administrators."""
        ext, rules = request.ext or {}, self._files.rules
        login = ext.get(ACCESS_KEY)
        user = ext.get("user") or login
        if user != login and not rules.is_admin(login):
            raise NoPermission("Only administrators ask about others.")
        text = ext.get("resource", "")
        needs = _needs(text, ext.get("action", "")) if text else NOTHING
        return answer_of(request, user, rules.may(user, needs), "1.0")

    def _list(self, connection: IConnection, request: Command) -> Command:
        body = fastjson.dumps(listed(self._files.documents))
        return response_to(request, body=body)


def _needs(resource: str, action: str) -> Needed:
    """The permission for an action on C{Topic:NAME} or C{Group:NAME}.

    @raise InvalidParameter: they are none.
    """
    kind, _, name = resource.partition(":")
    bits = {"pub": PUB, "sub": SUB}.get(action.lower())
    if kind.lower() == "topic" and name and bits is not None:
        return ((name, bits),)
    if kind.lower() == "group" and name and bits == SUB:
        return ((retry_topic(name), bits),)
    raise InvalidParameter(
        "resource is Topic:NAME with the action Pub or Sub, or Group:NAME with Sub."
    )
