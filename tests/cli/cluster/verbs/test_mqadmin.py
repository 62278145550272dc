"""C{rocketbroker mqadmin}: RocketMQ's spellings."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click
from click.testing import Result

from rocketbroker.cli.cluster.surroundings import Surroundings
from rocketbroker.cli.cluster.verbs.mqadmin_names import COMMANDS, MISSING, moment
from rocketbroker.cli.command import command as rocketbroker
from tests.cli.cluster.cluster import (
    BROKER,
    FIRST_USER,
    NAME_SERVER,
    POLICIES,
    VerbCase,
)

FACTS = Path(__file__).resolve().parents[4] / "docs" / "facts" / "admin.md"

#: Values of options that are no free text, by command and letter or by letter.
SAMPLES = {
    "p": "6",
    "r": "4",
    "w": "4",
    "q": "2",
    "qn": "2",
    "o": "7",
    "i": "1",
    "s": "1700000000000",
    "b": "1700000000000",
    "e": "1700000000000",
    "c": "5",
    "m": "64",
    "v": "1",
    **{f"{verb}Acl s": "User:x" for verb in ("create", "update", "delete", "get")},
    "copyAcl s": "User:x,User:y",
    **{
        f"{verb}Acl {letter}": text
        for verb in ("create", "update")
        for letter, text in (
            ("r", "Topic:x,Group:y*"),
            ("a", "Pub,Sub"),
            ("d", "Allow"),
            ("i", "10.0.0.0/8"),
        )
    },
    "deleteAcl r": "Topic:x,Group:y",
    "updateUser s": "disable",
    **{f"{verb}User t": "Super" for verb in ("create", "update")},
}

#: A command about policies.
ACL = ("createAcl", "-s", "User:x", "-r", "*", "-a", "Pub")


class NamesTests(VerbCase):
    """All commands of the Java tool."""

    def test_all(self) -> None:
        """Each command of the fact sheet is known, and no other."""
        text = FACTS.read_text("utf-8")
        begin = text.index("## 6. mqadmin commands")
        table = text[begin : text.index("Not registered although")]
        names = set()
        for cell in re.findall(r"^\| ([^|]+) \|", table, re.M):
            names |= {
                word.split()[0] for word in re.split("[,/]", cell) if word.strip()
            }
        names -= {"command", "---"}
        self.assertEqual(len(names), 89)
        self.assertEqual({*COMMANDS, *MISSING}, names)
        self.assertEqual(len(COMMANDS) + len(MISSING), 89)

    def test_calls(self) -> None:
        """Each becomes calls that our verbs understand."""
        for name, translation in COMMANDS.items():
            options = translation.options.split()
            letters = [text.partition("/")[0] for text in options]
            needed = [t.partition("/")[0] for t in options if "*" in t]
            for given in (letters, needed):
                values = {
                    each: SAMPLES.get(f"{name} {each}", SAMPLES.get(each, "x"))
                    for each in given
                }
                if name == "deleteSubGroup":
                    values.pop("b", None)
                elif "b" in letters:
                    values.setdefault("b", "1")
                for call in translation.calls(values):
                    self.check(name, call)

    def check(self, name: str, call: list[str]) -> None:
        """Let click parse a call."""
        found: click.Command = rocketbroker
        context = click.Context(found)
        parent = click.Context(found, obj=Surroundings(password="typed"))
        words = list(call)
        while isinstance(found, click.Group):
            below = found.get_command(context, words.pop(0))
            assert below is not None, (name, call)
            found = below
        try:
            found.make_context(name, words, parent)
        except click.UsageError as error:
            self.fail(f"{name}: {call}: {error.format_message()}")

    def test_list(self) -> None:
        """Without a name all are listed, each with its options or a sentence."""
        lines = self.call("mqadmin").stdout.splitlines()
        self.assertEqual(len(lines), 89)
        shown = {line.split()[0]: line for line in lines}
        self.assertIn("-t <topic> [-b <brokerAddr>]", shown["updateTopic"])
        self.assertIn("controllers", shown["electMaster"])

    def test_wrong(self) -> None:
        """A wrong name or option is told with what is right."""
        for words, expected in (
            (("nothing",), "has no command nothing"),
            (("topicRoute",), "-t is needed: mqadmin topicRoute"),
            (("topicRoute", "-x", "1"), "has no option -x: mqadmin topicRoute"),
            (("topicRoute", "-t"), "-t needs a value"),
            (("brokerStatus",), "Give -b BROKER"),
            (("deleteSubGroup", "-g", "G", "-b", "b"), "give -c instead of -b"),
            (("updateTopic", "-t", "T", "-p", "5"), "-p is 2"),
            (("getAcl", "-s", "x"), "-s is User:NAME, not 'x'"),
            ((*ACL, "-d", "perhaps"), "-d is Allow or Deny"),
        ):
            result = self.call("mqadmin", *words, status=2)
            self.assertIn(expected, result.stderr)
        result = self.call("mqadmin", "electMaster", status=1)
        self.assertIn("which rocketbroker does not have yet", result.stderr)
        self.assertIn("-t <topic>", self.call("mqadmin", "topicRoute", "-h").stdout)

    def test_moment(self) -> None:
        """Times as mqadmin takes them."""
        self.assertEqual(
            moment("2026-11-23#07:30:00:250"), "2026-11-23T07:30:00.250000"
        )
        self.assertEqual(moment("1700000000000"), "1700000000000")
        self.assertEqual((moment("-1"), moment("now")), ("latest", "now"))


class CallsTests(VerbCase):
    """Commands against a broker in memory."""

    def setUp(self) -> None:
        """A topic."""
        super().setUp()
        self.cluster.topic("T", 4)

    def test_callsAreShownAsAShellTakesThem(self) -> None:
        """A word with a quote or a space is quoted as shells do it."""
        result = self.call("mqadmin", "sendMessage", "-t", "T", "-p", "it's one")
        self.assertIn("""send T 'it'"'"'s one'\n""", result.stderr)

    def test_keysOfTheTools(self) -> None:
        """Requests are signed with those of mqadmin's file, which is not shown; those
        that the environment says go before them."""
        home = os.path.abspath(self.mktemp())
        os.makedirs(os.path.join(home, "conf"))
        self.environ = {"ROCKETMQ_HOME": home}
        for text, variables, key in (
            (None, {}, None),
            ("accessKey: tools\nsecretKey: hidden-secret", {}, "tools"),
            (None, {"ACCESS_KEY": "mine", "SECRET_KEY": "hidden"}, "mine"),
        ):
            if text is not None:
                with open(os.path.join(home, "conf", "tools.yml"), "w") as file:
                    file.write(text)
            for name, value in variables.items():
                self.environ[f"ROCKETMQ_CLIENT_{name}"] = value
            result = self.call("mqadmin", "topicRoute", "-t", "T", "-n", NAME_SERVER)
            command = self.cluster.machine.requests[-1][1]
            self.assertEqual((command.ext or {}).get("AccessKey"), key)
            self.assertNotIn("hidden", result.output)

    def test_damagedKeysOfTheTools(self) -> None:
        """Nothing is asked without them."""
        home = os.path.abspath(self.mktemp())
        os.makedirs(os.path.join(home, "conf"))
        self.environ = {"ROCKETMQ_HOME": home}
        with open(os.path.join(home, "conf", "tools.yml"), "w") as file:
            file.write("hidden: [")
        result = self.call("mqadmin", "topicList", status=1)
        self.assertIn("tools.yml has to have accessKey", result.stderr)
        self.assertEqual(self.cluster.machine.requests, [])

    def test_keysInASpanOfTime(self) -> None:
        """queryMsgByKey looks from -b to -e; 0 is any time."""
        now = self.cluster.machine.wall_ms()
        self.call("message", "send", "T", "x", "-k", "k")
        words = ("mqadmin", "queryMsgByKey", "-t", "T", "-k", "k")
        hour = 3_600_000
        for span, status in (
            (("-b", "0", "-e", "0"), 0),
            (("-b", str(now - hour), "-e", str(now + hour)), 0),
            (("-b", str(now + hour)), 3),
        ):
            self.call(*words, *span, status=status)

    def test_updateTopic(self) -> None:
        """A topic is made, and changed where it is there; the calls are shown."""
        words = ("updateTopic", "-b", BROKER, "-t", "New", "-w", "2", "-r", "2")
        result = self.call("mqadmin", *words)
        self.assertIn("= rocketbroker topic create New --broker", result.stderr)
        config = self.cluster.rig.topics.config("New")
        assert config is not None
        self.assertEqual((config.write_queue_nums, config.perm), (2, 6))
        self.call("mqadmin", *words[:5], "-w", "3", "--perm", "4")
        config = self.cluster.rig.topics.config("New")
        assert config is not None
        self.assertEqual((config.write_queue_nums, config.read_queue_nums), (3, 2))
        self.assertEqual(config.perm, 4)
        self.call("mqadmin", *words[:5], "-r", "1")
        config = self.cluster.rig.topics.config("New")
        assert config is not None
        self.assertEqual(config.read_queue_nums, 1)

    def test_updateGroup(self) -> None:
        """A group likewise, whatever the letters' size."""
        for retries in ("3", "5"):
            words = ("-g", "G", "-r", retries, "-s", "true")
            self.call("mqadmin", "updatesubgroup", *words)
            config = self.cluster.rig.groups.config("G")
            assert config is not None
            self.assertEqual(config.retry_max_times, int(retries))

    def test_refused(self) -> None:
        """What fails otherwise is not tried again as a change."""
        words = ("updateTopic", "-c", "nowhere", "-t", "New")
        result = self.call("mqadmin", *words, status=3)
        self.assertIn("There is no cluster nowhere", result.stderr)
        self.assertNotIn("topic update", result.stderr)

    def test_messages(self) -> None:
        """A message is sent and found; the name servers may be given."""
        words = (
            "-n",
            "ns:9876",
            "-t",
            "T",
            "-p",
            "hello world",
            "-c",
            "paid",
            "-k",
            "K",
        )
        result = self.call("mqadmin", "sendMessage", *words)
        self.assertIn("message send T 'hello world' --tag paid", result.stderr)
        self.assertIn("--namesrv ns:9876", result.stderr)
        found = self.call("mqadmin", "printMsg", "-t", "T", "-s", "paid")
        self.assertIn("hello world", found.stdout)

    def test_permissions(self) -> None:
        """Write permissions are wiped and given back at the name server."""
        for name, words in (("wipeWritePerm", "wipe"), ("addWritePerm", "permit")):
            result = self.call("mqadmin", name, "-b", self.name())
            self.assertIn(f"namesrv {words}", result.stderr)
            self.assertIn("ns:9876", result.stdout)

    def name(self) -> str:
        """The broker's name."""
        return self.cluster.rig.broker.settings.broker.broker_name


class AccessTests(VerbCase):
    """Commands about users and policies, against a broker with ACL 2.0."""

    broker_settings = POLICIES

    def setUp(self) -> None:
        """We are the first user."""
        super().setUp()
        self.environ = FIRST_USER

    def mqadmin(self, line: str, status: int = 0) -> Result:
        """Call it; no secret is shown unless somebody wants it."""
        result = self.call("mqadmin", *line.split(), status=status)
        self.assertNotIn("hidden", result.output)
        return result

    def test_users(self) -> None:
        """Made, changed, copied, seen, removed."""
        result = self.mqadmin("createUser -c cluster-a -u billing -p hidden -t Normal")
        shown = "= rocketbroker user create billing --cluster cluster-a --type normal\n"
        self.assertEqual(result.stderr, shown)
        self.assertEqual(self.password("billing"), "hidden")
        self.mqadmin("createUser -u billing -p hidden", status=1)
        self.mqadmin("updateUser -u billing -p hidden-too -s disable")
        self.assertEqual(self.password("billing"), "hidden-too")
        self.assertIn("disable", self.mqadmin("getUser -u billing").stdout)
        self.mqadmin(f"copyUser -f {BROKER} -t {BROKER} -u billing,root")
        self.assertIn("billing", self.mqadmin("listUser -f bill").stdout)
        self.mqadmin("deleteUser -u billing")
        self.mqadmin("getUser -u billing", status=3)

    def password(self, user: str) -> str:
        """What the broker has."""
        (row,) = self.kind("user", "user", "show", user, "--show-secrets")
        return str(row["password"])

    def test_policies(self) -> None:
        """Made and changed by either command, for several resources."""
        self.mqadmin("createUser -u billing -p hidden")
        words = "-s User:billing -a Pub,Sub -d Allow -i 10.0.0.0/8"
        self.mqadmin(f"createAcl {words} -r Topic:Orders,Group:bill*")
        self.mqadmin("updateAcl -s User:billing -a Sub -d Deny -r Topic:Orders")
        found = self.mqadmin("getAcl -s User:billing").stdout
        self.assertRegex(found, r"Topic:Orders +Sub +- +Deny")
        self.assertRegex(found, r"Group:bill\* +Pub Sub +10.0.0.0/8 +Allow")
        self.mqadmin(f"copyAcl -f {BROKER} -t {BROKER} -s User:billing")
        self.mqadmin("deleteAcl -s User:billing -r Topic:Orders")
        found = self.mqadmin("listAcl -s User:bill -r bill").stdout
        self.assertIn("Group:bill*", found)
        self.assertNotIn("Topic:Orders", found)
        self.mqadmin("deleteAcl -s User:billing")
        self.mqadmin("getAcl -s User:billing", status=3)
