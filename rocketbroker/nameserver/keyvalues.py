# -*- test-case-name: tests.nameserver.test_keyvalues -*-
"""Key-value settings, kept in one file (C{docs/facts/namesrv.md} 12).

They are used for one purpose: the namespace L{ORDER_TOPIC_CONFIG} says which topics are
ordered, and how many queues of which broker each has.

Differences: RocketMQ overwrites the file in place and never reads the copy that it
keeps. Here the file is replaced whole, and the copy is read if the file is missing or
damaged. A change that cannot be saved is answered with SYSTEM_ERROR, not with success.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.errors import (
    ConfigurationError,
    QueryNotFound,
    RemoteProtocolError,
    SystemFailure,
)
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.jsonfile import DAMAGED, JsonFile
from rocketbroker.nameserver.file_writer import FileWriter, InThread
from rocketbroker.remoting.cooperative_tasks import done, only_stopped, result_of
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
    ISlices,
)
from rocketbroker.wire.bodies.topics import KVTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.namesrv import (
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
)
from rocketbroker.wire.json_reader import loads
from rocketbroker.wire.json_writer import dumping, dumps
from rocketbroker.wire.steps import Steps

#: The namespace whose keys are ordered topics.
ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"

#: How long all names, keys and values may be together. A namespace is answered in one
#: frame of 16 MiB, and a character takes six bytes when it has to be escaped; with the
#: ordered topics beyond that, no broker's registration could be answered any more.
MAX_CHARACTERS: Final = 2 << 20

#: How many namespaces and keys there may be: to put so many into order, as answers and
#: the file have them, takes 20 ms.
MAX_ENTRIES: Final = 50_000

#: A namespace of so many keys is written at once: it takes a millisecond.
FEW: Final = 1000


def _tables(content: bytes) -> dict[str, dict[str, str]]:
    """The tables that a file contains.

    @raise ValueError: it is not such a file.
    """
    try:
        whole = loads(content)
    except RemoteProtocolError as error:
        raise ValueError(str(error)) from error
    tables = whole.get("configTable") if isinstance(whole, dict) else None
    if not isinstance(tables, dict):
        raise ValueError("there is no configTable")
    found: dict[str, dict[str, str]] = {}
    for namespace, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"the namespace {namespace} is no table")
        found[str(namespace)] = {
            str(key): str(value) for key, value in table.items() if value is not None
        }
    return found


def length_of(table: Mapping[str, str]) -> int:
    """How many characters the keys and values have."""
    return sum(len(key) + len(value) for key, value in table.items())


@final
class KeyValues:
    """The settings and the requests about them."""

    _log = Logger()

    def __init__(
        self, files: IFiles, path: str, in_thread: InThread, slices: ISlices
    ) -> None:
        self._files = files
        self._path = path
        self._file = JsonFile(files, path)
        self._saving = FileWriter(self._file, in_thread)
        self._slices = slices
        self._namespaces: dict[str, dict[str, str]] = {}
        #: Namespaces as answers carry them, until one of their keys changes.
        self._bodies: dict[str, bytes] = {}
        self._characters = self._entries = 0

    def load(self) -> None:
        """Read the file, and see whether it could be written. Blocking.

        Where neither the file nor its copy makes sense, there are no settings, and the
        next change keeps both files aside.

        @raise ConfigurationError: the disk does not let it be read or written; one
            sentence.
        """
        content = None
        try:
            content = self._file.load(_tables)
        except OSError as error:
            raise ConfigurationError(
                f"The key-value settings in {self._path} cannot be read: "
                f"{error.strerror or error}."
            ) from error
        except ValueError as error:
            self._log.error(
                "The key-value settings are empty: {files} cannot be read: {error}. "
                "The next change of them keeps the damaged content as *{aside}.",
                files=" and ".join(self._file.damaged),
                error=error,
                aside=DAMAGED,
            )
        if self._file.fallbacks:
            self._log.warn(
                "The key-value settings are those of {path}.bak, one change behind: "
                "{path} is missing or damaged.",
                path=self._path,
            )
        self._namespaces = {} if content is None else _tables(content)
        self._characters = sum(
            len(namespace) + length_of(table)
            for namespace, table in self._namespaces.items()
        )
        self._entries = sum(1 + len(table) for table in self._namespaces.values())
        probe = self._path + ".probe"
        try:
            self._files.make_dirs(os.path.dirname(self._path))
            self._files.open(probe, create=True).close()
            self._files.remove(probe)
        except OSError as error:
            raise ConfigurationError(
                f"The key-value settings in {self._path} cannot be written: "
                f"{error.strerror or error}."
            ) from error

    def stop(self) -> Deferred[None]:
        """Fires when nothing is being written any more."""
        return self._saving.idle()

    def namespace(self, namespace: str) -> Mapping[str, str]:
        """The settings of a namespace."""
        return self._namespaces.get(namespace, {})

    def register(self, table: IResponderTable) -> None:
        """Answer requests 100, 101, 102 and 219."""
        table.register(RequestCode.PUT_KV_CONFIG, self.put)
        table.register(RequestCode.GET_KV_CONFIG, self.get)
        table.register(RequestCode.DELETE_KV_CONFIG, self.delete)
        table.register(RequestCode.GET_KVLIST_BY_NAMESPACE, self.all_of)

    def put(self, connection: IConnection, request: Command) -> Answer:
        """Set a value (100)."""
        lacking = PutKVConfigRequestHeader.lacking(request.ext)
        if "namespace" in lacking or "key" in lacking:
            raise SystemFailure("namespace or key is null")
        if lacking:
            raise SystemFailure("value is null")
        header = PutKVConfigRequestHeader.from_ext(request.ext)
        namespace, key, value = header.namespace, header.key, header.value
        table = self._namespaces.get(namespace)
        more = entries = 0
        if table is None:
            table = {}
            more, entries = len(namespace), 1
        if key in table:
            more += len(value) - len(table[key])
        else:
            more += len(key) + len(value)
            entries += 1
        if more > 0 and self._characters + more > MAX_CHARACTERS:
            raise SystemFailure(
                f"All settings have {self._characters} characters, the most is "
                f"{MAX_CHARACTERS}."
            )
        if entries > 0 and self._entries + entries > MAX_ENTRIES:
            raise SystemFailure(
                f"There are {self._entries} namespaces and keys, the most is "
                f"{MAX_ENTRIES}."
            )
        self._characters += more
        self._entries += entries
        self._bodies.pop(namespace, None)
        self._namespaces.setdefault(namespace, table)[key] = value
        self._log.info(
            "{peer} set {key!r} in namespace {namespace!r} to {value!r:.200}",
            peer=connection.peer,
            key=key,
            namespace=namespace,
            value=value,
        )
        return self._saved(request)

    def get(self, connection: IConnection, request: Command) -> Command:
        """A value (101)."""
        header = GetKVConfigRequestHeader.from_ext(request.ext)
        value = self._namespaces.get(header.namespace, {}).get(header.key)
        if value is None:
            raise QueryNotFound(
                f"No config item, Namespace: {header.namespace} Key: {header.key}"
            )
        return response_to(request, ext=GetKVConfigResponseHeader(value=value).to_ext())

    def delete(self, connection: IConnection, request: Command) -> Answer:
        """Forget a value (102); its namespace stays."""
        header = DeleteKVConfigRequestHeader.from_ext(request.ext)
        table = self._namespaces.get(header.namespace)
        if table is None or header.key not in table:
            return response_to(request)
        self._characters -= len(header.key) + len(table.pop(header.key))
        self._entries -= 1
        self._bodies.pop(header.namespace, None)
        self._log.info(
            "{peer} deleted {key!r} from namespace {namespace!r}.",
            peer=connection.peer,
            key=header.key,
            namespace=header.namespace,
        )
        return self._saved(request)

    def all_of(self, connection: IConnection, request: Command) -> Answer:
        """All of a namespace (219)."""
        namespace = GetKVListByNamespaceRequestHeader.from_ext(request.ext).namespace
        if namespace not in self._namespaces:
            raise QueryNotFound(f"No config item, Namespace: {namespace}")

        def answered() -> Steps[Command]:
            body = yield from self.body(namespace)
            return response_to(request, body=body)

        return done(self._slices, connection, answered(), self.is_short(namespace))

    def is_short(self, namespace: str) -> bool:
        """Whether the body of a namespace is there, or made in a step."""
        return (
            namespace in self._bodies or len(self._namespaces.get(namespace, ())) <= FEW
        )

    def body(self, namespace: str) -> Steps[bytes]:
        """A namespace as answers carry it (KVTable); nothing if there never was one."""
        table = self._namespaces.get(namespace)
        if table is None:
            return b""
        body = self._bodies.get(namespace)
        if body is None:
            copy = dict(table)
            body = yield from dumping(KVTable(table=copy))
            if copy == table:
                self._bodies[namespace] = body
        return body

    def _saved(self, request: Command) -> Answer:
        """The answer to a change, when it is on the disk."""
        return Deferred.fromCoroutine(self._saving.answer(self._encoded, request))

    def _encoded(self) -> bytes | Deferred[bytes]:
        """The content of the file."""
        copy = {name: dict(table) for name, table in self._namespaces.items()}
        content = {"configTable": copy}

        def at_once(failure: Failure) -> bytes:
            """The server stops; what was changed has to be in the file."""
            only_stopped(failure)
            return dumps(content)

        if self._entries <= FEW:
            return dumps(content)
        return result_of(self._slices, self, dumping(content)).addErrback(at_once)
