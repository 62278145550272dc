# -*- test-case-name: tests.cli.cluster.test_secrets -*-
"""Secrets that a user gives: by a file, or at the terminal.

None is an argument of the command line: everybody on the machine can list those.
"""

from __future__ import annotations

import sys
from typing import TextIO

import click

from rocketbroker.cli.exit_status import USAGE, Failure


def given_secret(
    file: TextIO | None, what: str, option: str = "--secret-key", is_new: bool = False
) -> str:
    """The secret of a file, without the end of its line, or one that the user types.

    @param what: it is.
    @param option: of a file, without C{-file}.
    @param is_new: whether it is made now: it is typed twice.
    @raise Failure: it is empty, or nobody can be asked.
    """
    if file is not None:
        secret = file.read().strip("\r\n")
        if not secret or "\n" in secret:
            raise Failure(f"{option}-file has to hold one line: the secret.", USAGE)
        return secret
    if not sys.stdin.isatty():
        raise Failure(f"Give {option}-file FILE: nobody can be asked.", USAGE)
    return str(
        click.prompt(what, hide_input=True, err=True, confirmation_prompt=is_new)
    )
