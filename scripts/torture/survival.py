#!/usr/bin/env python3
"""What a broker has to survive under load, with all that it has acknowledged.

    python3 scripts/torture/survival.py [--quick] [--realtime]

kill -9, SIGTERM, SIGSTOP, no name server, and disks that become read-only or full. The
exit status is the number of figures that are not as they must be. --quick: once each.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.errors import RocketbrokerError
from scripts.lab.peers import wait_for, wait_for_route
from scripts.lab.rows import Figure, RowWords, measure_rows, row_words
from scripts.lab.servers import Cluster
from scripts.lab.targets import Scale, target
from scripts.torture import crash, full_disk
from scripts.torture.harness import Hole, Producers, compare, create_topics, kills

PRODUCERS = 4

#: How long a broker is stopped, without its name server, or with a disk that is
#: read-only, in seconds: longer than producers wait.
GONE_SECONDS = 4.0

#: The size of the disk that becomes read-only.
MEBIBYTES = 512

#: For the disk that becomes read-only: what is acknowledged is on the disk, and files
#: are small beside it.
DURABLE = {
    "flushDiskType": "SYNC_FLUSH",
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
    "diskSpaceEnoughBytes": 1,
}


#: Something that befalls a broker under load.
Blow = Callable[[Cluster, Scale], None]


class Died(Exception):
    """The broker is not there any more."""


@contextlib.contextmanager
def produced(cluster: Cluster) -> Iterator[Producers]:
    """A cluster that is up, to which producers send."""
    try:
        cluster.start()
        create_topics(cluster.names, crash.QUEUES, crash.TOPIC)
        with Producers.of_load(cluster, crash.TOPIC, PRODUCERS) as producers:
            assert wait_for(lambda: all(producers.sizes())), "nothing is produced"
            yield producers
    finally:
        cluster.stop()


def check_alive(cluster: Cluster) -> None:
    """@raise Died: it is not."""
    process = cluster.broker.process
    if process is None or process.poll() is not None:
        status = None if process is None else process.returncode
        raise Died(f"the broker died, status {status}:\n{cluster.logs()[-3000:]}")


def killed(cluster: Cluster, scale: Scale) -> None:
    """kill -9."""
    dice = random.Random(1)
    numbers = range(scale.of(50, 1))
    for _ in kills(cluster.broker, numbers, dice, lambda _: dice.uniform(0.2, 1.2)):
        pass


def terminated(cluster: Cluster, scale: Scale) -> None:
    """SIGTERM.

    @raise Died: it does not stop cleanly.
    """
    for _ in range(scale.of(6, 1)):
        time.sleep(0.5)
        cluster.broker.stop(signal.SIGTERM)
        # Whoever stops cleanly removes this mark.
        if (cluster.store / "abort").exists():
            raise Died(f"no clean stop:\n{cluster.logs()[-3000:]}")
        cluster.broker.start()


def stopped(cluster: Cluster, scale: Scale) -> None:
    """SIGSTOP, and later SIGCONT."""
    pid = target(cluster).pid
    for _ in range(scale.of(3, 1)):
        time.sleep(0.5)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(scale.of(1, 0) * GONE_SECONDS + 0.5)
        os.kill(pid, signal.SIGCONT)


def orphaned(cluster: Cluster, scale: Scale) -> None:
    """the name server gone."""
    cluster.namesrv.stop(signal.SIGKILL)
    time.sleep(GONE_SECONDS)
    cluster.namesrv.start()
    wait_for_route(cluster.namesrv.port, crash.TOPIC)


@contextlib.contextmanager
def own_disk() -> Iterator[Path]:
    """A directory with a file system of its own, which a failure makes read-only.

    @raise full_disk.NoDisk: it cannot be mounted.
    """
    with tempfile.TemporaryDirectory(prefix="read-only-") as folder:
        image, place = Path(folder, "image"), Path(folder, "disk")
        place.mkdir()
        with open(image, "wb") as file:
            file.truncate(MEBIBYTES << 20)
        try:
            run("mkfs.ext4", "-q", str(image))
            run("mount", "-o", "loop,errors=remount-ro", str(image), str(place))
        except OSError as error:
            raise full_disk.NoDisk(str(error)) from error
        try:
            yield place
        finally:
            subprocess.run(["umount", str(place)], capture_output=True, check=False)


def run(*words: str) -> None:
    """@raise OSError: a command is not there, or not permitted."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{words[0]}: {done.stderr.strip()}")


def read_only(scale: Scale) -> Iterator[Figure | str]:
    """A disk that becomes read-only under load, and is mounted anew.

    @raise Died: the broker does not survive it.
    @raise full_disk.NoDisk: it cannot be mounted.
    """
    with own_disk() as disk:
        store = disk / "store"
        cluster = Cluster(
            storePathRootDir=store,
            storePathCommitLog=store / "commitlog",
            **crash.SMALL,
            **DURABLE,
        )
        with produced(cluster) as producers:
            time.sleep(scale.of(5, 1))
            # What is acknowledged within the moment in which the file system ends does
            # not count: the kernel may report a sync as done of which it forgets pages.
            before = [Path(f"{note}.before") for note in producers.notes]
            for note, copy in zip(producers.notes, before, strict=True):
                copy.write_bytes(note.read_bytes())
            run("mount", "-o", "remount,abort", str(disk))
            time.sleep(scale.of(1, 0) * GONE_SECONDS + 1)
            check_alive(cluster)
            producers.end()
            # What was in the log and not in a queue comes with the next start.
            yield from lost(cluster, before, "a read-only disk", None)
            # Whether it has stopped cleanly is nothing that such a disk could keep.
            cluster.broker.stop()
            run("umount", str(disk))
            image = str(disk.parent / "image")
            subprocess.run(["fsck.ext4", "-p", image], capture_output=True, check=False)
            run("mount", "-o", "loop,errors=remount-ro", image, str(disk))
            cluster.broker.start()
            yield from lost(cluster, before, "the start after that")


def full(scale: Scale) -> Iterator[Figure | str]:
    """A disk that becomes full under load.

    @raise full_disk.Wrong: the broker dies, does not resume, or loses something.
    @raise full_disk.NoDisk: there is no such disk.
    """
    with full_disk.small_disk(None, 256) as disk:
        found = full_disk.Run(disk, "ASYNC_FLUSH", 1)
        try:
            found.cluster.start()
            create_topics(found.cluster.names, full_disk.QUEUES, full_disk.TOPIC)
            for number in range(scale.of(6, 1)):
                full_disk.one_round(found, number)
        finally:
            found.cluster.stop()
        yield Figure(
            "acknowledged on disks that became full", len(found.acknowledged), ""
        )


def lost(
    cluster: Cluster, notes: list[Path], by: str, bar: float | None = 0
) -> Iterator[Figure | str]:
    """What was acknowledged and is not there, or cannot be read."""
    try:
        found = compare(cluster.names, crash.TOPIC, notes)
    except (RocketbrokerError, Hole) as error:
        yield str(error)
        yield Figure(f"not readable after {by}", 1, "", 0, True)
        return
    of = f"of {found.acknowledged:,}"
    yield Figure(f"not there after {by}", len(found.missing), of, bar, True)
    if not found.acknowledged:
        yield Figure("acknowledged before", 0, "", 1, True, least=True)


def survival(words: RowWords) -> Iterator[Figure | str]:
    """All of these, one after the other; what is acknowledged has to be there."""
    scale = Scale(words.quick, None)
    deaths = 0
    # A broker registers only each half minute, so a name server is gone for long.
    series: list[list[Blow]] = [[killed], [terminated], [stopped], [orphaned]]
    if scale.quick:
        series = [[killed, terminated, stopped]]
    for blows in series:
        cluster = Cluster(**crash.SMALL)
        with produced(cluster) as producers:
            try:
                for blow in blows:
                    blow(cluster, scale)
                time.sleep(scale.of(10, 3) / 10)
                check_alive(cluster)
            except Died as died:
                deaths += 1
                yield str(died)
                cluster.broker.start()
            producers.end()
            names = [(blow.__doc__ or "").split(".")[0] for blow in blows]
            yield from lost(cluster, producers.notes, "; ".join(names))
    # That a disk becomes full has a quick form of its own.
    for disk in (read_only,) if scale.quick else (read_only, full):
        try:
            yield from disk(scale)
        except full_disk.NoDisk as error:
            yield f"left out, not permitted here: {error}"
        except (Died, Hole, full_disk.Wrong) as died:
            deaths += 1
            yield str(died)
    yield Figure("deaths, and other ends that must not be", deaths, "", 0, True)


ROWS = {"survival": survival}


def main() -> int:
    """Survive."""
    return measure_rows(ROWS, row_words(__doc__, ROWS))


if __name__ == "__main__":
    sys.exit(main())
