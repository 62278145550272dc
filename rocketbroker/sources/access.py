# -*- test-case-name: tests.sources.test_access -*-
"""The access options of reads and writes: TLS, and what requests are signed with.

Spark masks options with C{secret}, C{password}, C{token} or C{accessKey} in their names
where it shows a plan (C{spark.redaction.regex}); those here have such names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import attrs

from rocketbroker.auth.signatures import Credentials
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.option_values import truth, word

Options = TypeVar("Options", bound="AccessOptions")


@attrs.frozen(kw_only=True)
class AccessOptions:
    """How brokers and name servers are spoken to; picklable, hashable."""

    tls: bool = False
    tls_verify: bool = True
    tls_ca: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_key_password: str = attrs.field(default="", repr=False)
    access_key: str = ""
    secret_key: str = attrs.field(default="", repr=False)
    security_token: str = attrs.field(default="", repr=False)

    def tls_terms(self) -> ClientTls | None:
        """How TLS is spoken; C{None}: it is not."""
        if not self.tls:
            return None
        return ClientTls(
            verify=self.tls_verify,
            ca_path=self.tls_ca,
            certificate_path=self.tls_certificate,
            key_path=self.tls_key,
            key_password=self.tls_key_password,
        )

    def credentials(self) -> Credentials | None:
        """What requests are signed with; C{None}: they are not."""
        if not self.access_key:
            return None
        token = self.security_token or None
        return Credentials(self.access_key, self.secret_key, token)

    def with_access_for(self, others: Options) -> Options:
        """Other options, with the access of these."""
        access = {one.attribute: getattr(self, one.attribute) for one in ACCESS}
        return attrs.evolve(others, **access)

    def check_access(self) -> None:
        """See that they go together.

        @raise ConfigurationError: they do not.
        """
        if bool(self.access_key) != bool(self.secret_key):
            raise ConfigurationError("accessKey and secretKey go together")
        if not self.tls and (
            self.tls_ca or self.tls_certificate or self.tls_key or not self.tls_verify
        ):
            raise ConfigurationError("options that begin with tls go with tls=true")
        self.tls_terms()


class AccessOption(NamedTuple):
    """An option, as L{rocketbroker.sources.option_table.Option} has them.

    @ivar attribute: of L{AccessOptions}.
    """

    name: str
    attribute: str
    read: Callable[[str], object]
    default: str
    meaning: str


ACCESS: Final = (
    AccessOption(
        "tls",
        "tls",
        truth,
        "``false``",
        "Speak TLS with name servers and brokers.",
    ),
    AccessOption(
        "tls.verify",
        "tls_verify",
        truth,
        "``true``",
        "Whether their certificates must be signed by somebody who is trusted.",
    ),
    AccessOption(
        "tls.ca",
        "tls_ca",
        word,
        "whom the system trusts",
        "Who that is: a file in PEM, at the same path on each machine.",
    ),
    AccessOption(
        "tls.certificate", "tls_certificate", word, "none", "What we show, in PEM."
    ),
    AccessOption("tls.key", "tls_key", word, "none", "Its key, in PEM."),
    AccessOption(
        "tls.keyPassword", "tls_key_password", word, "none", "The key's password."
    ),
    AccessOption(
        "accessKey",
        "access_key",
        word,
        "none",
        "The account or user for whom requests are signed.",
    ),
    AccessOption(
        "secretKey", "secret_key", word, "none", "Its secret, or the user's password."
    ),
    AccessOption(
        "securityToken",
        "security_token",
        word,
        "none",
        "A token that some services want, too.",
    ),
)


def access_words(
    tls: ClientTls | None, credentials: Credentials | None
) -> dict[str, str]:
    """The options of an access, as words."""
    words: dict[str, str] = {}
    if tls is not None:
        words = {
            "tls": "true",
            "tls.verify": "true" if tls.verify else "false",
            "tls.ca": tls.ca_path,
            "tls.certificate": tls.certificate_path,
            "tls.key": tls.key_path,
            "tls.keyPassword": tls.key_password,
        }
    if credentials is not None:
        words |= {
            "accessKey": credentials.access_key,
            "secretKey": credentials.secret_key,
            "securityToken": credentials.security_token or "",
        }
    return {name: text for name, text in words.items() if text}
