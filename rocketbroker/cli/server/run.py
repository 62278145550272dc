# -*- test-case-name: tests.integration.test_starts -*-
"""C{rocketbroker broker run} and C{namesrv run}: twistd's programs in the foreground.

Flags, settings and what is refused are theirs. The log goes to standard error, so that
standard output has the ready line alone.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
from twisted.internet.defer import maybeDeferred
from twisted.logger import globalLogBeginner

from rocketbroker.app.logs import LoggedService
from rocketbroker.app.options import ServerOptions

T = TypeVar("T", bound=ServerOptions)

#: The words go to the server's own flags as they are, C{--help} too.
_AS_THEY_ARE: Final = {"ignore_unknown_options": True}


@click.command("run", context_settings=_AS_THEY_ARE, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def broker_run(words: tuple[str, ...]) -> None:
    """Start a broker in the foreground: --help shows its flags."""
    gc.disable()  # Imports make what stays: see rocketbroker.app.garbage.
    from rocketbroker.app.broker import Options, makeService

    run(Options(), "broker run", words, makeService)


@click.command("run", context_settings=_AS_THEY_ARE, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def namesrv_run(words: tuple[str, ...]) -> None:
    """Start a name server in the foreground: --help shows its flags."""
    gc.disable()  # Likewise.
    from rocketbroker.app.namesrv import Options, makeService

    run(Options(), "namesrv run", words, makeService)


@click.command("run", context_settings=_AS_THEY_ARE, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def proxy_run(words: tuple[str, ...]) -> None:
    """Start a proxy in the foreground: --help shows its flags."""
    from rocketbroker.app.proxy import Options, asyncio_reactor, makeService

    run(Options(), "proxy run", words, makeService, asyncio_reactor)


def run(
    options: T,
    name: str,
    words: tuple[str, ...],
    make_service: Callable[[T], LoggedService],
    make_reactor: Callable[[], Any] | None = None,
) -> None:
    """Run a server until a signal stops it.

    @param name: the verb, for the help.
    @param make_service: opens all that the server has; or ends the program.
    @param make_reactor: unless given, the reactor is that of servers.
    """
    if make_reactor is None:
        # Not where servers do not run: that is said in a sentence.
        from rocketbroker.app.reactor import server_reactor

        make_reactor = server_reactor
    reactor = make_reactor()
    options.run_by(name)
    options.parseOptions(words)
    service = make_service(options)
    assert service.log is not None
    globalLogBeginner.beginLoggingTo([service.log.observer], redirectStandardIO=False)
    service.startService()  # type: ignore[no-untyped-call]
    reactor.addSystemEventTrigger(
        "before",
        "shutdown",
        lambda: maybeDeferred(service.stopService),
    )
    reactor.run()
