# -*- test-case-name: tests.cli.cluster.test_access -*-
"""The access of the command line to a cluster: its TLS, and whom it signs for.

Where it is said, options have the names that they have in our clients
(L{rocketbroker.client.settings.ClientSettings}): in a context, and in variables of the
environment as C{ROCKETMQ_CLIENT_ACCESS_KEY}.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from rocketbroker.auth.signatures import Credentials
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConfigurationError

if TYPE_CHECKING:
    from rocketbroker.client.options import ClientOptions

#: Options that are paths: a context keeps them absolute.
PATHS: Final = ("tls_ca", "tls_certificate", "tls_key")

#: Options that nobody is shown.
SECRETS: Final = ("tls_key_password", "secret_key", "security_token")

NAMES: Final = ("tls", "tls_verify", *PATHS, "access_key", *SECRETS)

#: What stands before an option's name in a variable.
_PREFIX: Final = "ROCKETMQ_CLIENT_"

#: Where mqadmin's keys are, below C{ROCKETMQ_HOME}.
_TOOLS: Final = os.path.join("conf", "tools.yml")


@attrs.frozen(kw_only=True)
class Access:
    """How servers are spoken to.

    @ivar tls: C{None}: without TLS.
    @ivar credentials: C{None}: requests are not signed.
    """

    tls: ClientTls | None = None
    credentials: Credentials | None = None


def access_of(options: Mapping[str, Any], whose: str) -> Access:
    """The access that options say.

    @param options: some of L{NAMES}; texts are read.
    @param whose: begins the error.
    @raise ConfigurationError: they do not go together, or a file is not in order.
    """
    if not options:
        return Access()
    from rocketbroker.client.options import client_settings  # takes 20 ms

    unknown = sorted({*options} - {*NAMES})
    if unknown:
        raise ConfigurationError(f"{whose} has an unknown option {unknown[0]}")
    try:
        settings, _ = client_settings("none:1", {"settings": options}, {})
    except ConfigurationError as error:
        raise ConfigurationError(f"{whose}: {error}") from error
    return Access(tls=settings.tls_terms(), credentials=settings.credentials())


def access_of_environment(environ: Mapping[str, str]) -> Access:
    """The access that variables say.

    @raise ConfigurationError: see L{access_of}.
    """
    given = {name: environ.get(_PREFIX + name.upper()) for name in NAMES}
    options = {name: text for name, text in given.items() if text}
    return access_of(options, f"variables {_PREFIX}...")


def keys_of_mqadmin(environ: Mapping[str, str]) -> Credentials | None:
    """The keys that mqadmin signs with; C{None}: there are none.

    @raise ConfigurationError: their file is not in order; it is not repeated.
    """
    home = environ.get("ROCKETMQ_HOME")
    if not home:
        return None
    import yaml  # only mqadmin's names need it

    path = os.path.join(home, _TOOLS)
    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.safe_load(file) or {}
        key, secret = content.get("accessKey"), content.get("secretKey")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, AttributeError, yaml.YAMLError):
        raise ConfigurationError(
            f"{path} has to have accessKey: NAME and secretKey: SECRET"
        ) from None
    return Credentials(str(key), str(secret)) if key and secret else None


def client_options(access: Access) -> ClientOptions:
    """The options of C{connect}: all of them are said, so that no variable counts."""
    tls = access.tls or ClientTls()
    keys = access.credentials or Credentials("", "")
    return {
        "tls": access.tls is not None,
        "tls_verify": tls.verify,
        "tls_ca": tls.ca_path or None,
        "tls_certificate": tls.certificate_path or None,
        "tls_key": tls.key_path or None,
        "tls_key_password": tls.key_password or None,
        "access_key": keys.access_key or None,
        "secret_key": keys.secret_key or None,
        "security_token": keys.security_token,
    }
