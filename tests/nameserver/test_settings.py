"""Settings asked for and changed while the name server runs."""

from __future__ import annotations

import errno

from rocketbroker.config.namesrv import NamesrvOptions
from rocketbroker.config.properties import parse
from rocketbroker.wire.codes import RequestCode
from tests.nameserver.case import KV_PATH, SETTINGS_PATH, NameServerTestCase

UPDATE = RequestCode.UPDATE_NAMESRV_CONFIG
GET = RequestCode.GET_NAMESRV_CONFIG


class SettingsTests(NameServerTestCase):
    """Requests 318 and 319."""

    def shown(self) -> dict[str, str]:
        """What 319 answers."""
        return parse(self.ask(GET).body.decode("utf-8"))

    def saved(self) -> dict[str, str]:
        """What the settings file says."""
        return parse(self.files.read(SETTINGS_PATH).decode("iso-8859-1"))

    def test_logged(self) -> None:
        """A change is a line that says who made it."""
        peer = self.connection.peer
        body = b"enableTopicList=false\norderMessageEnable=true\n"
        self.assertEqual(
            self.logged(UPDATE, {}, body),
            [
                f"{peer} changed settings: orderMessageEnable=true (was false), "
                f"enableTopicList=false (was true); kept in {SETTINGS_PATH}."
            ],
        )

    def test_get(self) -> None:
        """All settings are shown, sorted, those of the file too."""
        self.begin(color="blue", useTLS="false", listenPort="5")
        text = self.ask(GET).body.decode("utf-8")
        lines = text.splitlines()
        self.assertEqual(lines, sorted(lines))
        for line in (
            "color=blue",
            "useTLS=false",
            "listenPort=5",
            "orderMessageEnable=false",
            f"kvConfigPath={KV_PATH}",
            f"configStorePath={SETTINGS_PATH}",
        ):
            self.assertIn(line, lines)
        self.assertNotIn("connectTimeoutMillis", text)

    def test_update(self) -> None:
        """A change is in force at once, shown, and saved, and nothing else is."""
        response = self.ask(UPDATE, body=b"orderMessageEnable=true\n")
        self.assertEqual((response.code, response.remark), (0, None))
        self.assertTrue(self.nameserver.settings.options.order_message_enable)
        self.assertEqual(self.shown()["orderMessageEnable"], "true")
        self.assertEqual(self.saved(), {"orderMessageEnable": "true"})

    def test_nothing(self) -> None:
        """No body is a success that changes nothing."""
        self.assertEqual(self.ask(UPDATE).code, 0)
        self.assertFalse(self.files.exists(SETTINGS_PATH))

    def test_allowed(self) -> None:
        """Each key of the allow-list can be changed."""
        shown = self.shown()
        for key in NamesrvOptions.running_keys():
            text = {"true": "false", "false": "true"}.get(shown[key], "7")
            self.assertEqual(self.ask(UPDATE, body=f"{key}={text}".encode()).code, 0)
            self.assertEqual(self.shown()[key], text)

    def test_scan(self) -> None:
        """Silent brokers are looked for in the new period."""
        self.ask(UPDATE, body=b"scanNotActiveBrokerInterval=700")
        self.assertEqual(self.nameserver.scan.period, 0.7)

    def test_blackList(self) -> None:
        """Keys of the black list are refused, and all others of that request."""
        self.begin(configBlackList="waitSecondsForService; enableTopicList")
        for key in (
            "configBlackList",
            "configStorePath",
            "kvConfigPath",
            "rocketmqHome",
            "waitSecondsForService",
            "enableTopicList",
        ):
            body = f"orderMessageEnable=true\n{key}=1".encode()
            self.assertEqual(
                self.refusal(UPDATE, body=body),
                (16, "Can not update config in black list."),
            )
        self.assertFalse(self.nameserver.settings.options.order_message_enable)

    def test_longWait(self) -> None:
        """A request cannot take the name server out of service for long, by either key;
        a shorter wait, and a long one that is not waited, may be set."""
        self.begin(needWaitForService="true")
        change = b"waitSecondsForService=300"
        self.assertEqual(self.ask(UPDATE, body=change).code, 0)
        code, remark = self.refusal(UPDATE, body=b"waitSecondsForService=86400")
        self.assertEqual(code, 1)
        self.assertIn("waitSecondsForService would be 86400", remark or "")
        self.assertEqual(self.nameserver.settings.options.wait_seconds_for_service, 300)
        off = b"needWaitForService=false\nwaitSecondsForService=86400"
        self.assertEqual(self.ask(UPDATE, body=off).code, 0)
        on = b"needWaitForService=true"
        self.assertEqual(self.refusal(UPDATE, body=on)[0], 1)
        self.assertFalse(self.nameserver.settings.options.need_wait_for_service)
        self.assertEqual(self.ask(UPDATE, body=b"enableTopicList=false").code, 0)

    def test_longWaitInFile(self) -> None:
        """Where the file says that it waits for long, other keys can be changed."""
        self.begin(needWaitForService="true", waitSecondsForService="86400")
        self.assertEqual(self.ask(UPDATE, body=b"enableTopicList=false").code, 0)

    def test_notAllowed(self) -> None:
        """Keys that are read at the start are refused by name."""
        self.begin(connectTimeoutMillis="5")
        for key in ("listenPort", "metricsPromExporterPort", "connectTimeoutMillis"):
            self.assertEqual(
                self.refusal(UPDATE, body=f"{key}=1".encode()),
                (16, f"Can not update config {key} while running: it needs a restart."),
            )

    def test_unknown(self) -> None:
        """Unknown keys are refused, also those of the file."""
        self.begin(color="blue")
        for key in ("color", "shape"):
            self.assertEqual(
                self.refusal(UPDATE, body=f"{key}=red".encode()),
                (16, f"Can not update config {key}: it is not known here."),
            )

    def test_anyFile(self) -> None:
        """The requests of CVE-2023-37582, which make the name server write a text of
        the sender to a file of his choice, change nothing and make no file."""
        paths = self.files.paths()
        evil = "/etc/shadow"
        for body in (
            f"configStorePath={evil}\nproductEnvName=ssh-rsa AAAA",
            f"kvConfigPath={evil}",
            f"orderMessageEnable=true\\nconfigStorePath={evil}",
            f"productEnvName=a\\nconfigStorePath={evil}",
        ):
            self.refusal(UPDATE, body=body.encode())
        self.assertEqual(self.files.paths(), paths)

    def test_badValue(self) -> None:
        """A value that does not fit is refused, and nothing is changed."""
        self.assertEqual(
            self.refusal(UPDATE, body=b"orderMessageEnable=true\nenableTopicList=x"),
            (1, "request: enableTopicList cannot be 'x': it must be true or false."),
        )
        self.assertFalse(self.nameserver.settings.options.order_message_enable)

    def test_notProperties(self) -> None:
        """What is not a properties text is refused."""
        for body in (b"a=\\u12", b"\xff"):
            self.assertEqual(
                self.refusal(UPDATE, body=body), (1, "string2Properties error")
            )

    def test_diskFull(self) -> None:
        """A change that cannot be saved is in force, and the answer says so."""
        self.files.fail("pwrite", errno.ENOSPC)
        code, remark = self.refusal(UPDATE, body=b"orderMessageEnable=true")
        self.assertEqual(code, 1)
        self.assertIn("could not be saved", str(remark))
        self.assertTrue(self.nameserver.settings.options.order_message_enable)
