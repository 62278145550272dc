# -*- test-case-name: tests.cli.cluster.verbs.test_mqadmin -*-
"""C{rocketbroker mqadmin NAME}: RocketMQ's commands by their names and options there.

Each becomes calls of our verbs, which are shown, so that they can be used the next
time. What they print is ours.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import attrs
import click

from rocketbroker.cli.cluster.access import keys_of_mqadmin
from rocketbroker.cli.cluster.options import surroundings_of
from rocketbroker.cli.cluster.surroundings import Surroundings
from rocketbroker.cli.cluster.verbs.mqadmin_names import COMMANDS, MISSING
from rocketbroker.cli.cluster.verbs.mqadmin_translation import (
    Call,
    Translation,
    Values,
)
from rocketbroker.cli.exit_status import USAGE, Failure, explained
from rocketbroker.errors import ConfigurationError


def parse(words: Sequence[str], translation: Translation, name: str) -> Values:
    """The values of mqadmin's options; C{n} are the name servers.

    @raise Failure: an option is not known, has no value, or is missing.
    """
    spec = {}
    for text in [*translation.options.split(), "n/namesrvAddr"]:
        letter, _, long = text.rstrip("*?").partition("/")
        spec[letter] = spec[long] = letter, text.endswith("?")
    found: dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        key, equals, value = word.lstrip("-").partition("=")
        letter, is_flag = spec.get(key, ("", False))
        if not letter or not word.startswith("-"):
            raise Failure(f"{name} has no option {word}: {usage(name)}", USAGE)
        if is_flag:
            value = "true"
        elif not equals:
            if not left:
                raise Failure(f"{word} needs a value: {usage(name)}", USAGE)
            value = left.pop(0)
        found[letter] = value
    options = translation.options.split()
    for letter in (text.partition("/")[0] for text in options if text.endswith("*")):
        if letter not in found:
            raise Failure(f"-{letter} is needed: {usage(name)}", USAGE)
    return found


def usage(name: str) -> str:
    """The options of a command, as mqadmin shows them."""
    words = []
    for text in COMMANDS[name].options.split():
        letter, _, long = text.rstrip("*?").partition("/")
        word = f"-{letter}" if text.endswith("?") else f"-{letter} <{long}>"
        words.append(word if text.endswith("*") else f"[{word}]")
    return " ".join(["mqadmin", name, "[-n <namesrvAddr>]", *words])


def known_name(name: str) -> str:
    """A command's name as RocketMQ writes it; it takes small letters for large ones.

    @raise Failure: there is none.
    """
    for known in (*COMMANDS, *MISSING):
        if known.lower() == name.lower():
            return known
    raise Failure(
        f"mqadmin has no command {name}: 'rocketbroker mqadmin' lists them.", USAGE
    )


def list_commands() -> None:
    """Print all names, with what becomes of them."""
    for name in sorted((*COMMANDS, *MISSING), key=str.lower):
        words = MISSING.get(name)
        click.echo(f"  {name:<34} {words or usage(name).partition(name)[2].strip()}")


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]}
)
@click.argument("name", required=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def mqadmin(context: click.Context, name: str | None, words: tuple[str, ...]) -> None:
    """Do what mqadmin's command NAME does, with its options.

    The calls that it becomes are shown. Without NAME: a list of all. Requests are
    signed as mqadmin's with the keys of ROCKETMQ_HOME/conf/tools.yml, where neither a
    context nor the environment says others.
    """
    if name is None:
        list_commands()
        return
    name = known_name(name)
    if name in MISSING:
        raise Failure(f"{name} has no verb here. {MISSING[name]}")
    if "-h" in words or "--help" in words:
        click.echo(usage(name))
        return
    translation = COMMANDS[name]
    values = parse(words, translation, name)
    surroundings = signing(surroundings_of(context))
    if translation.password in values:
        password = values[translation.password]
        surroundings = attrs.evolve(surroundings, password=password)
    context.find_root().obj = surroundings
    calls = translation.calls(values)
    for number, call in enumerate(calls):
        is_last = number == len(calls) - 1
        try:
            _call(context, call, values.get("n"))
        except Failure as failure:
            if (
                is_last
                or not translation.fallback
                or "there already" not in str(failure)
            ):
                raise
        else:
            if translation.fallback:
                return


def signing(surroundings: Surroundings) -> Surroundings:
    """Surroundings with the keys of mqadmin's file, if there is one."""
    try:
        return attrs.evolve(surroundings, keys=keys_of_mqadmin(os.environ))
    except ConfigurationError as error:
        raise explained(error) from error


def _call(context: click.Context, call: Call, name_servers: str | None) -> None:
    """Show one call of ours, and make it."""
    root = context.find_root()
    words = [*call, *(["--namesrv", name_servers] if name_servers else [])]
    click.echo(f"= rocketbroker {shlex.join(words)}", err=True)
    root.command.main(
        args=words, prog_name=root.info_name, standalone_mode=False, obj=root.obj
    )
