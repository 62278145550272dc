"""Key-value settings."""

from __future__ import annotations

import errno

from twisted.logger import capturedLogs, formatEvent

from rocketbroker.errors import ConfigurationError
from rocketbroker.nameserver.keyvalues import MAX_CHARACTERS
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import loads
from tests.nameserver.case import KV_PATH, NameServerTestCase

PUT = RequestCode.PUT_KV_CONFIG
GET = RequestCode.GET_KV_CONFIG
DELETE = RequestCode.DELETE_KV_CONFIG
LIST = RequestCode.GET_KVLIST_BY_NAMESPACE


class RequestTests(NameServerTestCase):
    """Requests 100, 101, 102 and 219."""

    def put(self, namespace: str = "n", key: str = "k", value: str = "v") -> None:
        """Set a value."""
        header = {"namespace": namespace, "key": key, "value": value}
        self.assertEqual(self.ask(PUT, header).code, 0)

    def test_putAndGet(self) -> None:
        """What was put is got, and is in the file."""
        self.put()
        response = self.ask(GET, {"namespace": "n", "key": "k"})
        self.assertEqual((response.code, response.ext), (0, {"value": "v"}))
        self.assertEqual(self.files.read(KV_PATH), b'{"configTable":{"n":{"k":"v"}}}')

    def test_mostCharacters(self) -> None:
        """All settings together fit in an answer; what does not is not taken."""
        room = MAX_CHARACTERS - len("n") - len("k")
        header = {"namespace": "n", "key": "k", "value": "v" * (room + 1)}
        self.assertEqual(
            self.refusal(PUT, header),
            (1, f"All settings have 0 characters, the most is {MAX_CHARACTERS}."),
        )
        self.put(value="v" * room)
        self.assertEqual(self.refusal(PUT, {**header, "key": "l", "value": ""})[0], 1)
        self.put(value="v" * room)
        self.put(value="short")
        self.put(key="l", value="v" * 1000)
        self.assertEqual(self.ask(DELETE, {"namespace": "n", "key": "l"}).code, 0)
        self.put(value="v" * room)

    def test_logged(self) -> None:
        """Each change is a line that says who made it; a long value is cut."""
        peer = self.connection.peer
        header = {"namespace": "n", "key": "k", "value": "v" * 300}
        self.assertEqual(
            self.logged(PUT, header),
            [f"{peer} set 'k' in namespace 'n' to '{'v' * 199}"],
        )
        deleted = f"{peer} deleted 'k' from namespace 'n'."
        self.assertEqual(self.logged(DELETE, header), [deleted])
        self.assertEqual(self.logged(DELETE, header), [])
        self.assertEqual(self.logged(LIST, header), [])

    def test_previousFile(self) -> None:
        """The file before the last change stands beside it."""
        self.put()
        self.put(value="w")
        self.assertEqual(
            self.files.read(KV_PATH + ".bak"), b'{"configTable":{"n":{"k":"v"}}}'
        )

    def test_putWithoutNames(self) -> None:
        """Namespace, key and value must be there."""
        for header in ({"key": "k", "value": "v"}, {"namespace": "n"}, {}, None):
            self.assertEqual(self.refusal(PUT, header), (1, "namespace or key is null"))
        self.assertEqual(
            self.refusal(PUT, {"namespace": "n", "key": "k"}), (1, "value is null")
        )

    def test_getNothing(self) -> None:
        """What is not there is not found."""
        self.put()
        for header in ({"namespace": "m", "key": "k"}, {"namespace": "n", "key": "x"}):
            self.assertEqual(
                self.refusal(GET, header),
                (
                    22,
                    f"No config item, Namespace: {header['namespace']} "
                    f"Key: {header['key']}",
                ),
            )

    def test_delete(self) -> None:
        """What is deleted is gone, and deleting nothing is a success."""
        self.put()
        for header in (
            {"namespace": "n", "key": "k"},
            {"namespace": "n", "key": "k"},
            {"namespace": "m", "key": "k"},
        ):
            self.assertEqual(self.ask(DELETE, header).code, 0)
        self.assertEqual(self.refusal(GET, {"namespace": "n", "key": "k"})[0], 22)
        self.assertEqual(self.files.read(KV_PATH), b'{"configTable":{"n":{}}}')

    def test_list(self) -> None:
        """A namespace is listed; it stays when it is empty."""
        self.assertEqual(
            self.refusal(LIST, {"namespace": "n"}),
            (22, "No config item, Namespace: n"),
        )
        self.put()
        self.assertEqual(self.json(LIST, {"namespace": "n"}), {"table": {"k": "v"}})
        self.ask(DELETE, {"namespace": "n", "key": "k"})
        self.assertEqual(self.json(LIST, {"namespace": "n"}), {"table": {}})

    def test_diskFull(self) -> None:
        """A change that cannot be saved is in force, and the answer says so."""
        self.files.fail("pwrite", errno.ENOSPC)
        header = {"namespace": "n", "key": "k", "value": "v"}
        self.assertEqual(
            self.refusal(PUT, header),
            (
                1,
                "The change is in force but could not be saved: No space left on "
                "device.",
            ),
        )
        self.assertEqual(self.json(LIST, {"namespace": "n"}), {"table": {"k": "v"}})


class FileTests(NameServerTestCase):
    """The file at the start."""

    def write(self, content: bytes, path: str = KV_PATH) -> None:
        """Put a file there."""
        self.files.make_dirs("/ns")
        file = self.files.open(path, create=True)
        file.truncate(0)
        file.pwrite(content, 0)
        file.close()

    def refused(self) -> str:
        """Why the name server does not start."""
        return str(self.assertRaises(ConfigurationError, self.begin))

    def test_read(self) -> None:
        """What the file says is there after the start."""
        self.write(b'{"configTable":{"n":{"k":"v","x":null,"y":1}}}')
        self.begin()
        self.assertEqual(
            self.json(LIST, {"namespace": "n"}), {"table": {"k": "v", "y": "1"}}
        )

    def test_missingOrEmpty(self) -> None:
        """A missing and an empty file mean no settings."""
        self.write(b"")
        self.begin()
        self.assertEqual(self.refusal(LIST, {"namespace": "n"})[0], 22)

    def test_copy(self) -> None:
        """When a crash left only the copy, that is read."""
        self.write(b'{"configTable":{"n":{"k":"v"}}}', KV_PATH + ".bak")
        self.begin()
        self.assertEqual(self.json(LIST, {"namespace": "n"}), {"table": {"k": "v"}})

    def test_damaged(self) -> None:
        """A file of another shape means no settings, and the log says why."""
        for content, why in (
            (b"[]", "there is no configTable"),
            (b'{"configTable":1}', "there is no configTable"),
            (b'{"configTable":{"n":1}}', "the namespace n is no table"),
        ):
            self.write(content)
            with capturedLogs() as events:
                self.begin()
            self.assertEqual(
                [formatEvent(event) for event in events],
                [
                    f"The key-value settings are empty: {KV_PATH} cannot be read: "
                    f"{why}. The next change of them keeps the damaged content as "
                    "*.damaged."
                ],
            )
            self.assertEqual(self.refusal(LIST, {"namespace": "n"})[0], 22)

    def test_damagedIsKept(self) -> None:
        """The next changes overwrite neither the damaged file nor a damaged copy."""
        self.write(b'{"configTable":{"n":{"k":"v"')
        self.write(b"junk", KV_PATH + ".bak")
        self.begin()
        for value in ("1", "2"):
            self.ask(PUT, {"namespace": "n", "key": "k", "value": value})
        self.assertEqual(
            self.files.read(KV_PATH + ".damaged"), b'{"configTable":{"n":{"k":"v"'
        )
        self.assertEqual(self.files.read(KV_PATH + ".bak.damaged"), b"junk")
        self.begin()
        self.assertEqual(self.json(LIST, {"namespace": "n"}), {"table": {"k": "2"}})

    def test_fallBack(self) -> None:
        """Where only the file is damaged, the copy is read, and the log says so."""
        self.write(b"{")
        self.write(b'{"configTable":{"n":{"k":"v"}}}', KV_PATH + ".bak")
        with capturedLogs() as events:
            self.begin()
        (event,) = events
        self.assertIn("one change behind", formatEvent(event))
        self.assertEqual(self.json(LIST, {"namespace": "n"}), {"table": {"k": "v"}})

    def test_unwritable(self) -> None:
        """A place that cannot be written is found at the start."""
        self.files.fail("open", errno.EACCES)
        self.assertEqual(
            self.refused(),
            f"The key-value settings in {KV_PATH} cannot be written: Permission "
            f"denied.",
        )

    def test_unreadable(self) -> None:
        """A file that cannot be read is not taken for an empty one."""
        self.write(b'{"configTable":{}}')
        self.files.fail("read", errno.EIO)
        self.assertEqual(
            self.refused(),
            f"The key-value settings in {KV_PATH} cannot be read: Input/output error.",
        )

    def test_nothingLeftBehind(self) -> None:
        """Starting leaves no file."""
        self.assertEqual(self.files.list("/ns"), [])

    def test_writtenForJava(self) -> None:
        """What is written can be read as RocketMQ writes it."""
        self.write(b'{"configTable":{"ORDER_TOPIC_CONFIG":{"T1":"b1:8;b2:8"}}}')
        self.begin()
        header = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T2", "value": "b1:1"}
        self.ask(PUT, header)
        self.assertEqual(
            loads(self.files.read(KV_PATH)),
            {"configTable": {"ORDER_TOPIC_CONFIG": {"T1": "b1:8;b2:8", "T2": "b1:1"}}},
        )
