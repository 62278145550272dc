"""The verbs of the command line, one after the other, against any cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from click.testing import CliRunner

from rocketbroker.cli.command import command

#: What differs from broker to broker and from moment to moment.
VOLATILE: Final = frozenset(
    "address id offset_id born born_host stored store_host first_stored last_message "
    "last_consumed started uptime version in out in_today out_today log disk_percent "
    "behind tps server system_properties committed before rocketbroker".split()
)

#: Words, what is put in, and the exit status.
STORY: Final[list[tuple[str, str, int]]] = [
    ("topic create Verbs -q 2 --perm rw", "", 0),
    ("topic create Verbs", "", 1),
    ("topic ls Verbs", "", 0),
    ("topic show Verbs", "", 0),
    ("topic update Verbs --read-queues 3 --write-queues 3", "", 0),
    ("topic update Verbs -q 2 --yes", "", 0),
    ("topic show Nowhere", "", 3),
    ("group create G --retries 3 --no-broadcast", "", 0),
    ("group create G", "", 1),
    ("group update G --retries 5", "", 0),
    ("group show G", "", 0),
    ("group show Nowhere", "", 3),
    ("message send Verbs one -k k1 --tag A -p x=y --queue broker-a:0", "", 0),
    # One each: of several that are in flight Java's broker may store a later one first.
    ("message send Verbs --ids --queue broker-a:0", "two\n\n", 0),
    ("message send Verbs --ids --queue broker-a:0", "three\n", 0),
    ("message send Nowhere x --queue broker-a:0", "", 0),
    ("message receive Verbs -o jsonl", "", 0),
    ("message receive Verbs -o jsonl -g G -c 2", "", 0),
    ("message receive Verbs -o jsonl -g G --queue broker-a:0", "", 0),
    ("message receive Verbs -o jsonl -c 9", "", 3),
    ("message find Verbs -k k1", "", 0),
    ("message find Verbs --tag A --from 1h", "", 0),
    ("message find Verbs -k k2", "", 3),
    ("message find Verbs --queue broker-a:0 --offset 2", "", 0),
    ("message find Verbs --queue broker-a:0 --offset 3", "", 3),
    ("message view 7F0000010000270F00000000FFFFFFFF", "", 3),
    ("group show G --topic Verbs", "", 0),
    ("group reset G Verbs --to earliest --dry-run", "", 0),
    ("group reset G Verbs --to earliest --yes", "", 0),
    ("group reset G Verbs --to 1h --yes", "", 0),
    ("group reset G Verbs --to latest --yes", "", 0),
    ("offset set G Verbs broker-a:0 1 --yes", "", 0),
    ("offset set G Verbs broker-a:0 9 --yes", "", 1),
    ("offset show Verbs --at 1h", "", 0),
    ("group show G --topic Verbs", "", 0),
    ("group create H", "", 0),
    ("offset clone G H Verbs --yes", "", 0),
    ("consumer ls G", "", 3),
    ("producer ls Nobody", "", 3),
    ("kv set Space key value", "", 0),
    ("kv get Space key", "", 0),
    ("kv ls Space", "", 0),
    ("kv delete Space key --yes", "", 0),
    ("kv get Space key", "", 3),
    ("kv ls Nowhere", "", 3),
    ("cluster ls", "", 0),
    ("broker settings broker-a flushDiskType", "", 0),
    ("broker settings broker-a nothing", "", 3),
    ("broker status Nowhere", "", 3),
    ("group delete G --yes --topics", "", 0),
    ("group show G", "", 3),
    ("topic delete Verbs", "", 2),
    ("topic delete Verbs --yes", "", 0),
    ("topic ls Verbs", "", 0),
]


def told(
    names: str, environ: Mapping[str, str] | None = None, option: str = "-n"
) -> Iterator[tuple[str, int, int, list[dict[str, Any]]]]:
    """Tell the story to a cluster: words, wanted and found exit status, and rows.

    @param names: of it, as the option takes them.
    @param environ: more variables.
    """
    for line, stdin, status in STORY:
        words = [*line.split(), option, names]
        if "jsonl" not in words:
            words += ["-o", "jsonl"]
        result = CliRunner().invoke(command, words, input=stdin, env=environ)
        rows = [json.loads(each) for each in result.stdout.splitlines()]
        yield line, status, result.exit_code, [plain(row) for row in rows]


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what differs."""
    return {name: value for name, value in row.items() if name not in VOLATILE}
