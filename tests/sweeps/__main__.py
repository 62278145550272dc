"""Damage stores in each way there is, and look at what comes of it.

    python3 scripts/torture/sweep.py [torn] [rot] [blocks] [power] [slaves] [broker]
                                     [transactions] [--quick] [--workloads 150]

torn: the log, queues, checkpoint, index and tables end, or are zeros, from every byte
of their last records or entries on: what is whole is handed out, and nothing else.

rot: every bit of the last records is turned, after a clean stop and after a kill: what
is handed out is what was sent, and nothing else is lost.

blocks: each block of each file cannot be read, after a clean stop and after a kill: the
store starts, goes on, and hands out all that has no byte in it.

power: the machine stops before any call to the disk of random workloads, under some of
which the clock is set, and leaves what was synced, or all, or names without data, or
any blocks: what was flushed is there, tables have their last content or the one before.

slaves: the same at a store to which a master's log is copied, and which is truncated
when another becomes the master: its log is the beginning of its master's, with all that
was flushed, and it goes on until it has the same log, queues and index.

broker: the same under a whole broker with SYNC_FLUSH: what was answered with SEND_OK is
there, delayed messages are delivered, topics, groups and offsets are as written.

transactions: the same under one whose producer then answers what he is asked: each ends
as he has decided, and is delivered twice only where the power went between its commit
and the mark of it.

All in memory, but for a sample of torn logs. Prints figures, and up to 20 of what was
wrong; exit status 1 if anything was. --quick: some of the cases, as the unit tests have
them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from tests.sweeps import blocks, broker, power, rot, slaves, torn, transactions

MAX_SHOWN = 20


def sweep_torn(quick: bool, workloads: int) -> list[str]:
    """Torn files."""
    figures = torn.Figures()
    torn.sweep(figures, 61 if quick else 1)
    print(f"torn: {figures}")
    return figures.wrong


def sweep_power(quick: bool, workloads: int) -> list[str]:
    """Power losses."""
    figures = power.Figures()
    seeds = range(6 if quick else workloads)
    power.sweep(figures, seeds, power.STEPS, 0.2 if quick else 1.0)
    print(f"power: {figures}")
    return figures.wrong


def sweep_slaves(quick: bool, workloads: int) -> list[str]:
    """Power losses of a slave."""
    figures = power.Figures()
    seeds = range(4 if quick else workloads // 2)
    slaves.sweep(figures, seeds, power.STEPS, 0.2 if quick else 0.5)
    print(f"slaves: {figures}")
    return figures.wrong


def sweep_broker(quick: bool, workloads: int) -> list[str]:
    """Power losses under a broker."""
    figures = power.Figures()
    seeds = range(2 if quick else workloads // 5)
    broker.sweep(figures, seeds, power.STEPS, 0.2 if quick else 0.5)
    print(f"broker: {figures}")
    return figures.wrong


def sweep_transactions(quick: bool, workloads: int) -> list[str]:
    """Power losses in the middle of transactions."""
    figures = transactions.Figures()
    seeds = range(3 if quick else workloads // 3)
    transactions.sweep(figures, seeds, power.STEPS, 0.2 if quick else 0.5)
    print(f"transactions: {figures}")
    return figures.wrong


def sweep_rot(quick: bool, workloads: int) -> list[str]:
    """Turned bits."""
    figures = rot.Figures()
    for clean in (True, False):
        rot.sweep(figures, clean, 41 if quick else 1)
    print(f"rot: {figures}")
    return figures.wrong


def sweep_blocks(quick: bool, workloads: int) -> list[str]:
    """Blocks that cannot be read."""
    figures = blocks.Figures()
    for clean in (True, False):
        blocks.sweep(figures, clean, 4 if quick else 1)
    print(f"blocks: {figures}")
    return figures.wrong


SWEEPS: dict[str, Callable[[bool, int], list[str]]] = {
    "torn": sweep_torn,
    "rot": sweep_rot,
    "blocks": sweep_blocks,
    "power": sweep_power,
    "slaves": sweep_slaves,
    "broker": sweep_broker,
    "transactions": sweep_transactions,
}


def main() -> int:
    """Run those asked for."""
    parser = argparse.ArgumentParser(
        prog="sweep.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sweeps", nargs="*", choices=[[], *SWEEPS], default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workloads", type=int, default=150)
    words = parser.parse_args()
    good = True
    for name in words.sweeps or SWEEPS:
        begin = time.monotonic()
        wrong = SWEEPS[name](words.quick, words.workloads)
        print(f"{name}: {time.monotonic() - begin:.0f} s")
        for what in wrong[:MAX_SHOWN]:
            print(f"  {what}")
        good = good and not wrong
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
