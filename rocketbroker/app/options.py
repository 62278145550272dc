# -*- test-case-name: tests.app.test_options -*-
"""Flags of all servers, and how a start is refused.

twistd itself answers a wrong flag with the usage on standard output and exit status 0,
and an exception with a traceback. Servers are started by scripts, so here both end with
one sentence on standard error and exit status 1.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn, ParamSpec, TypeVar

import attrs
from twisted.logger import Logger
from twisted.python import usage

from rocketbroker.app.logs import KEEP_FILES, ROTATE_BYTES, Log, LogOptions
from rocketbroker.app.startflags import OUTPUTS, StartFlags
from rocketbroker.config.effects import ignored
from rocketbroker.config.keyed import KeyedOptions, did_you_mean, text_of
from rocketbroker.config.paths import resolved
from rocketbroker.config.properties import read
from rocketbroker.config.running import running_only
from rocketbroker.config.unsupported import REMOVED
from rocketbroker.errors import ConfigurationError, StoreError

P = ParamSpec("P")
T = TypeVar("T")

#: Where a daemon's log goes unless it is told otherwise, as twistd has it.
LOG_FILE: Final = "twistd.log"

#: Where twistd writes its process id unless it is told otherwise.
PID_FILE: Final = "twistd.pid"


def refuse(sentence: str) -> NoReturn:
    """End the program: one sentence on standard error, exit status 1."""
    sys.stderr.write(sentence.rstrip() + "\n")
    raise SystemExit(1)


def say_ready(line: str) -> None:
    """Say the ready line on the process's own standard output: twistd puts what is
    printed into the log."""
    print(line, file=sys.__stdout__, flush=True)


def or_refuse(function: Callable[P, T]) -> Callable[P, T]:
    """Let C{function} end the program where it meets an operator's mistake."""

    @functools.wraps(function)
    def refusing(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (ConfigurationError, StoreError) as error:
            refuse(str(error))

    return refusing


def kept_changes(path: str, classes: Iterable[type[KeyedOptions]]) -> dict[str, str]:
    """The settings that requests have changed in a server without a file of C{-c}.

    @param path: where they are, if there are any.
    @raise ConfigurationError: the file cannot be read; one sentence.
    """
    return running_only(read(path), classes) if os.path.exists(path) else {}


def printed(parts: Iterable[KeyedOptions], only: Collection[str] = ()) -> str:
    """The settings in force as C{-p} and C{-m} print them, each key once.

    @param parts: all options; of a key that two have, what the later one says counts.
    @param only: the keys to print; none: all.
    """
    values: dict[str, object] = {}
    for part in parts:
        values.update((key, getattr(part, name)) for key, name in part.keys().items())
    return "".join(
        f"{key}={'' if value is None else text_of(value)}\n"
        for key, value in values.items()
        if not only or key in only
    )


def log_ignored(
    log: Logger,
    unknown: Iterable[str],
    given: Iterable[str],
    parts: Iterable[KeyedOptions],
) -> None:
    """Log which settings change nothing.

    @param unknown: the keys that are not known.
    @param given: the keys that were set.
    @param parts: the options that they set.
    """
    parts = tuple(parts)
    known = [key for part in parts for key in part.keys()]  # noqa: SIM118
    for key in unknown:
        if key in REMOVED:
            log.warn(
                "The setting {key} was removed: {instead}.",
                key=key,
                instead=REMOVED[key],
            )
            continue
        log.warn(
            "The setting {key} is not known here.{hint}",
            key=key,
            hint=did_you_mean(key, known),
        )
    keys = ignored(given, parts)
    if keys:
        log.warn(
            "These settings have no effect here: {keys} (docs/settings.rst).",
            keys=", ".join(keys),
        )


class ServerOptions(usage.Options):
    """Flags of RocketMQ's own start scripts."""

    synopsis = "[options]"

    optParameters: ClassVar[Sequence[Sequence[Any]]] = [
        ["configFile", "c", None, "The settings, a .properties file."],
        ["namesrvAddr", "n", None, "Name servers, host:port;host:port."],
        ["log-file", None, None, "The log file, instead of twistd's --logfile."],
        ["log-level", None, "info", "debug, info, warn, error or critical."],
        ["log-format", None, "text", "text or json."],
        ["log-rotate-bytes", None, ROTATE_BYTES, "Rotate a file so large; 0: never."],
        ["log-keep", None, KEEP_FILES, "How many old log files to keep."],
        ["metrics-port", None, None, "0: any free port; off: no metrics."],
        ["output", None, "text", "The ready line: text or json."],
    ]
    optFlags: ClassVar[Sequence[Sequence[Any]]] = [
        ["printConfigItem", "p", "Print all settings and exit."],
        ["exit-with-parent", None, "Stop when the process that started this is gone."],
    ]

    def __init__(self) -> None:
        self.topics: list[str] = []
        self._sets: list[str] = []
        self._verb: str | None = None
        super().__init__()  # type: ignore[no-untyped-call]

    def run_by(self, verb: str) -> None:
        """They are those of the verb C{rocketbroker VERB} and not of twistd."""
        self._verb = verb
        self.synopsis = f"Usage: rocketbroker {verb} {self.synopsis}"
        self.longdesc = ""

    def opt_set(self, text: str) -> None:
        """A setting, KEY=VALUE; may be given again."""
        self._sets.append(text)

    def opt_h(self) -> None:
        """Show this help."""
        self.opt_help()  # type: ignore[no-untyped-call]

    def opt_version(self) -> None:
        """Show the version and exit."""
        from rocketbroker.files.own_version import own_version

        print(f"rocketbroker, version {own_version()}")
        sys.exit(0)

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        """Read the flags; end the program if they make no sense."""
        try:
            super().parseOptions(options)  # type: ignore[no-untyped-call]
        except usage.UsageError as error:
            refuse(f"{error}. Try --help.")

    def parseArgs(self, *args: str) -> None:
        """Take nothing but flags."""
        if args:
            raise usage.UsageError(f"{args[0]!r} is not a flag")

    def start_flags(self) -> StartFlags:
        """The flags that all servers have.

        @raise ConfigurationError: one of them makes no sense; one sentence.
        """
        flags = StartFlags.from_texts(
            self._sets,
            self.topics,
            self["metrics-port"],
            bool(self["exit-with-parent"]),
            self["output"],
        )
        if not self._foreground():
            for name, is_given in (
                ("--exit-with-parent", flags.exit_with_parent),
                ("--output json", flags.output != OUTPUTS[0]),
            ):
                if is_given:
                    raise ConfigurationError(
                        f"{name} is not for a daemon, which leaves its parent and its "
                        "standard output: add twistd's -n."
                    )
        return flags

    @property
    def says_ready(self) -> bool:
        """Whether standard output gets the ready line; the log goes to standard error
        then. Under twistd the log alone says it, unless JSON is asked for."""
        return self._verb is not None or self["output"] != OUTPUTS[0]

    def open_log(self) -> Log | None:
        """Open the log; None where twistd's C{--syslog} or C{--logger} take it.

        @raise ConfigurationError: flags that make no sense, or a file that cannot be
            opened; one sentence.
        """
        options = LogOptions.from_texts(
            self["log-file"],
            self["log-level"],
            self["log-format"],
            self["log-rotate-bytes"],
            self["log-keep"],
        )
        parent: Mapping[str, Any] = self.parent or {}
        others = [key for key in ("logfile", "syslog", "logger") if parent.get(key)]
        if options.file is not None and others:
            raise ConfigurationError(
                f"--log-file and twistd's --{others[0]} exclude each other."
            )
        if "syslog" in others or "logger" in others:
            return None
        file = parent.get("logfile")
        if options.file is None and file != "-" and (file or not self._foreground()):
            options = attrs.evolve(options, file=resolved(file or LOG_FILE))
        if options.file is None and not self._foreground():
            raise ConfigurationError("A daemon has no standard output to log to.")
        return options.open(sys.stderr if self.says_ready else sys.stdout)

    def _foreground(self) -> bool:
        return self.parent is None or bool(self.parent["nodaemon"])

    def postOptions(self) -> None:
        """Two servers in the foreground may share a working directory."""
        parent = self.parent
        if parent is not None and parent["nodaemon"] and parent["pidfile"] == PID_FILE:
            parent["pidfile"] = None
