# -*- test-case-name: tests.cli.cluster.test_contexts -*-
"""Contexts: names for addresses of name servers, which a flag or a variable may also
give.

Contexts are kept in C{contexts.json} below C{$XDG_CONFIG_HOME/rocketbroker}, or
C{~/.config/rocketbroker}::

    {"current": "test", "contexts": {"test": {"namesrv": "10.0.0.1:9876;other:9876"}}}

In this order: C{-n}, C{--context}, C{ROCKETMQ_NAMESRV}, C{NAMESRV_ADDR} (as RocketMQ's
clients and tools know it), the current context, C{127.0.0.1:9876}.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Final

import attrs

from rocketbroker.cli.exit_status import NotThere
from rocketbroker.errors import ConfigurationError

VARIABLES: Final = ("ROCKETMQ_NAMESRV", "NAMESRV_ADDR")

#: Where a name server of this machine listens.
DEFAULT_NAME_SERVER: Final = "127.0.0.1:9876"


@attrs.frozen
class Contexts:
    """The content of the file.

    @ivar name_servers: by the context's name.
    @ivar current: the one that is used where nothing else is said.
    """

    name_servers: dict[str, str] = attrs.field(factory=dict)
    current: str | None = None

    def of(self, name: str) -> str:
        """The name servers of a context.

        @raise NotThere: there is no such context.
        """
        if name not in self.name_servers:
            known = ", ".join(sorted(self.name_servers)) or "none"
            raise NotThere(
                f"There is no context {name}; there are: {known}. rocketbroker context "
                "set NAME HOST:PORT makes one."
            )
        return self.name_servers[name]


def path_of(environ: Mapping[str, str]) -> str:
    """Where the file is."""
    root = environ.get("XDG_CONFIG_HOME") or os.path.join(
        environ.get("HOME") or os.path.expanduser("~"), ".config"
    )
    return os.path.join(root, "rocketbroker", "contexts.json")


def load(path: str) -> Contexts:
    """Read the file; without one there are no contexts.

    @raise ConfigurationError: it cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        return Contexts(
            {
                str(name): str(context["namesrv"])
                for name, context in content["contexts"].items()
            },
            content.get("current"),
        )
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path} holds no contexts that can be read: mend it, or remove it"
        ) from error


def save(path: str, contexts: Contexts) -> None:
    """Replace the file as a whole.

    @raise OSError: it cannot be written.
    """
    content = {
        "current": contexts.current,
        "contexts": {
            name: {"namesrv": servers}
            for name, servers in sorted(contexts.name_servers.items())
        },
    }
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
    os.replace(f"{path}.tmp", path)


def choose(namesrv: str | None, context: str | None, environ: Mapping[str, str]) -> str:
    """The name servers to use.

    @param namesrv: the value of C{-n}.
    @param context: the value of C{--context}.
    @raise NotThere: there is no such context.
    @raise ConfigurationError: the contexts cannot be read.
    """
    if namesrv:
        return namesrv
    if not context:
        for variable in VARIABLES:
            if environ.get(variable):
                return environ[variable]
    contexts = load(path_of(environ))
    name = context or contexts.current
    return contexts.of(name) if name else DEFAULT_NAME_SERVER
