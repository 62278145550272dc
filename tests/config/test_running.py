"""Changes of settings while a server runs."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.keyed import KeyedOptions
from rocketbroker.config.namesrv import NamesrvOptions
from rocketbroker.config.running import MAX_VALUE, running_only
from rocketbroker.config.settings_page import SECTIONS
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import BrokerError

#: Settings that are words of any kind; where they end up was looked at: in the fields
#: of answers.
WORDS = {"regionId"}

IN_BLACK_LIST = (16, "Can not update config in black list.")


class ChangeTests(SynchronousTestCase):
    """L{BrokerSettings.changed}: what a request may change."""

    def setUp(self) -> None:
        """A broker's settings."""
        self.settings = self.make()

    def make(self, **given: str) -> BrokerSettings:
        """Settings of a file."""
        return BrokerSettings.from_properties(
            {"storePathRootDir": "/store", **given}, "/etc/broker.properties"
        )

    def refusal(self, **texts: str) -> tuple[int, str]:
        """Code and remark of a change that is refused."""
        error = self.assertRaises(BrokerError, self.settings.changed, texts)
        return error.code, str(error)

    def test_changed(self) -> None:
        """Values of several parts change together; the settings before stay."""
        after = self.settings.changed(
            {"brokerPermission": "4", "defaultQueryMaxNum": " 7 "}
        )
        self.assertEqual(after.broker.broker_permission, 4)
        self.assertEqual(after.store.default_query_max_num, 7)
        self.assertEqual(self.settings.broker.broker_permission, 6)

    def test_restart(self) -> None:
        """A setting that is read at the start is refused in words, unless it stays."""
        for key, text in (("listenPort", "5"), ("flushDiskType", "SYNC_FLUSH")):
            self.assertEqual(
                self.refusal(brokerPermission="4", **{key: text}),
                (16, f"Can not update config {key} while running: it needs a restart."),
            )
        same = self.settings.as_properties()
        texts = {key: same[key] for key in ("listenPort", "storePathRootDir")}
        self.assertEqual(self.settings.changed(texts).as_properties(), same)

    def test_removedSettingIsRefusedWithWhatToDoInstead(self) -> None:
        """An earlier release had it, and a script may set it still."""
        code, text = self.refusal(metricsExporterNames="true")
        self.assertEqual(code, 16)
        self.assertIn("it was removed: RocketMQ's own rocketmq-exporter runs", text)

    def test_unknown(self) -> None:
        """An unknown key is refused by name; so is one that only the file has."""
        self.settings = self.make(color="blue")
        for key, hint in (
            ("color", ""),
            ("brokerPermision", " Did you mean brokerPermission?"),
        ):
            self.assertEqual(
                self.refusal(**{key: "4"}),
                (16, f"Can not update config {key}: it is not known here.{hint}"),
            )

    def test_withoutEffect(self) -> None:
        """A key of RocketMQ that changes nothing here is taken and shown."""
        after = self.settings.changed({"sendMessageThreadPoolNums": "3"})
        self.assertEqual(after.as_properties()["sendMessageThreadPoolNums"], "3")
        # This one has nothing that shows it.
        self.settings.changed({"timerWarmEnable": "true"})

    def test_unsupported(self) -> None:
        """What would refuse the start refuses a change, too."""
        code, remark = self.refusal(enableDLegerCommitLog="true")
        self.assertEqual(code, 1)
        self.assertIn("DLedger groups are not supported", remark)

    def test_badValue(self) -> None:
        """A value that does not fit refuses the whole change."""
        self.assertEqual(
            self.refusal(brokerPermission="4", defaultTopicQueueNums="0"),
            (
                1,
                "request: defaultTopicQueueNums cannot be '0': it must lie between 1 "
                "and 2147483647.",
            ),
        )

    def test_blackList(self) -> None:
        """Three keys are always refused, and those of configBlackList."""
        self.settings = self.make(configBlackList="brokerPermission; regionId")
        keys = "brokerConfigPath", "configBlackList", "rocketmqHome"
        for key in (*keys, "brokerPermission", "regionId"):
            self.assertEqual(self.refusal(**{key: "4"}), IN_BLACK_LIST)
        self.make().changed({"brokerPermission": "4"})

    def test_texts(self) -> None:
        """A value has no control characters, which would make a second line of the
        answer to 26, and a length that anybody means."""
        for evil in ("a\nbrokerConfigPath=/x", "a\rb", "a\tb", "a\x85b", "a\0"):
            code, remark = self.refusal(regionId=evil)
            self.assertEqual(code, 1)
            self.assertIn("there is a control character", remark)
        self.settings.changed({"regionId": "a" * MAX_VALUE})
        self.assertEqual(self.refusal(regionId="a" * (MAX_VALUE + 1))[0], 1)

    def test_filterServer(self) -> None:
        """CVE-2023-33246: a broker that starts filter servers runs a command of
        C{rocketmqHome}; here nothing starts them, and neither key can be set."""
        evil = "-c $@|sh . echo touch /tmp/x;"
        self.assertEqual(
            self.refusal(filterServerNums="1", rocketmqHome=evil), IN_BLACK_LIST
        )
        self.assertEqual(self.refusal(filterServerNums="1")[0], 16)


class AllowListTests(SynchronousTestCase):
    """The keys that are declared as changeable."""

    def test_protected(self) -> None:
        """None holds a free text, so that no value becomes a path, a command, a class
        or an address."""
        for _, options in SECTIONS:
            types = attrs.fields_dict(options)  # type: ignore[arg-type]
            names = options.keys()
            for key in options.running_keys() - WORDS:
                name = names[key]
                bounded = name in options.CHOICES or name in options.CHECKS
                if not bounded:
                    self.assertIn(types[name].type, ("int", "bool", "float"), key)

    def test_disjoint(self) -> None:
        """Name server and broker have no key in common, as both of one process may have
        one file."""
        broker = BrokerOptions.running_keys() | StoreOptions.running_keys()
        self.assertEqual(broker & NamesrvOptions.running_keys(), frozenset())

    def test_effect(self) -> None:
        """Each has an effect."""
        for _, options in SECTIONS:
            names = options.keys()
            for key in options.running_keys():
                self.assertIn(names[key], options.ABOUT)

    def test_runningOnly(self) -> None:
        """Of a file that RocketMQ wrote whole, only these keys are taken."""
        texts = {"brokerPermission": "4", "listenPort": "5", "storePathRootDir": "/x"}
        classes: list[type[KeyedOptions]] = [BrokerOptions, StoreOptions]
        self.assertEqual(running_only(texts, classes), {"brokerPermission": "4"})
        self.assertEqual(running_only(texts, [NamesrvOptions]), {})
