# -*- test-case-name: tests.config.test_tls -*-
"""The settings of TLS: who must speak it, and the certificates of both sides.

In RocketMQ they are system properties, and those of certificates stand in a file of
their own besides, which wins (C{docs/facts/security-metrics.md 4}). Here they are keys
of the settings, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar, Final, Self

import attrs

from rocketbroker.config.keyed import KeyedOptions
from rocketbroker.config.paths import resolved
from rocketbroker.config.properties import read
from rocketbroker.errors import ConfigurationError

DISABLED: Final = "disabled"
PERMISSIVE: Final = "permissive"
ENFORCING: Final = "enforcing"

#: Where RocketMQ looks for the file of certificates.
CONFIG_FILE: Final = "/etc/rocketmq/tls.properties"

#: Whether clients are asked for a certificate.
NONE: Final = "none"
OPTIONAL: Final = "optional"
REQUIRE: Final = "require"


@attrs.frozen
class Identity:
    """What one side shows, and whom it trusts.

    @ivar certificate_path: a chain in PEM; empty: none is shown.
    @ivar key_path: its key in PEM (PKCS#8).
    @ivar key_password: of the key; empty: it has none.
    @ivar trust_path: certificates in PEM of those who are trusted to sign; empty: those
        that the system trusts.
    """

    certificate_path: str = ""
    key_path: str = ""
    key_password: str = attrs.field(default="", repr=False)
    trust_path: str = ""


@attrs.frozen(kw_only=True, eq=False)
class TlsOptions(KeyedOptions):
    """TLS at the ports of a server, and on its way to others."""

    IRREGULAR: ClassVar = {
        "server_mode": "tls.server.mode",
        "enable": "tls.enable",
        "config_file": "tls.config.file",
        "test_mode_enable": "tls.test.mode.enable",
        "server_need_client_auth": "tls.server.need.client.auth",
        "server_key_path": "tls.server.keyPath",
        "server_key_password": "tls.server.keyPassword",
        "server_cert_path": "tls.server.certPath",
        "server_auth_client": "tls.server.authClient",
        "server_trust_cert_path": "tls.server.trustCertPath",
        "client_key_path": "tls.client.keyPath",
        "client_key_password": "tls.client.keyPassword",
        "client_cert_path": "tls.client.certPath",
        "client_auth_server": "tls.client.authServer",
        "client_trust_cert_path": "tls.client.trustCertPath",
    }
    CHOICES: ClassVar = {
        "server_mode": (DISABLED, PERMISSIVE, ENFORCING),
        "enable": ("", "true", "false"),
        "server_need_client_auth": (NONE, OPTIONAL, REQUIRE),
    }
    PATHS: ClassVar = {
        "config_file": resolved,
        "server_key_path": resolved,
        "server_cert_path": resolved,
        "server_trust_cert_path": resolved,
        "client_key_path": resolved,
        "client_cert_path": resolved,
        "client_trust_cert_path": resolved,
    }
    SECRETS: ClassVar = frozenset({"server_key_password", "client_key_password"})
    ABOUT: ClassVar = {
        "server_mode": "whether clients may speak TLS: disabled, permissive (with and "
        "without), enforcing (they must)",
        "enable": "speak TLS to other servers; empty: where TLS is enforced",
        "config_file": "a file with the keys below, which wins",
        "test_mode_enable": "a certificate of our own, nobody is asked for one, and "
        "all are trusted: the keys below do nothing",
        "server_need_client_auth": "ask clients for a certificate: none, optional, "
        "require; only with tls.server.authClient",
        "server_key_path": "the key of the certificate, in PEM",
        "server_key_password": "its password",
        "server_cert_path": "the certificate and those that signed it, in PEM",
        "server_auth_client": "certificates of clients must be signed by whom we trust",
        "server_trust_cert_path": "whom we trust to sign those; empty: as the system",
        "client_key_path": "the key of what we show to other servers",
        "client_key_password": "its password",
        "client_cert_path": "the certificate that we show to other servers",
        "client_auth_server": "theirs must be signed by whom we trust",
        "client_trust_cert_path": "whom we trust to sign those; empty: as the system",
    }

    server_mode: str = PERMISSIVE
    enable: str = ""
    config_file: str = CONFIG_FILE
    test_mode_enable: bool = True
    server_need_client_auth: str = NONE
    server_key_path: str | None = None
    server_key_password: str = attrs.field(default="", repr=False)
    server_cert_path: str | None = None
    server_auth_client: bool = False
    server_trust_cert_path: str | None = None
    client_key_path: str | None = None
    client_key_password: str = attrs.field(default="", repr=False)
    client_cert_path: str | None = None
    client_auth_server: bool = False
    client_trust_cert_path: str | None = None

    @property
    def server(self) -> Identity:
        """This side, where it is the server."""
        return Identity(
            self.server_cert_path or "",
            self.server_key_path or "",
            self.server_key_password,
            self.server_trust_cert_path or "",
        )

    @property
    def client(self) -> Identity:
        """This side, where it is the client."""
        return Identity(
            self.client_cert_path or "",
            self.client_key_path or "",
            self.client_key_password,
            self.client_trust_cert_path or "",
        )

    @property
    def is_client(self) -> bool:
        """Whether TLS is spoken to other servers, if no other setting says so."""
        if self.enable:
            return self.enable == "true"
        return self.server_mode == ENFORCING

    @classmethod
    def read(cls, properties: Mapping[str, str], source: str) -> Self:
        """The settings of a server's file, and of the one with certificates.

        @param source: the first file's name in an error.
        @raise ConfigurationError: a value that does not fit, a file that cannot be
            read, or certificates that are named and would not be used; one sentence.
        """
        options = cls.from_properties(properties, source)
        path = options.config_file
        if "tls.config.file" in properties or os.path.exists(path):
            options = options.changed(read(path), path)
            source = path
        options._check(source)
        return options

    def _check(self, source: str) -> None:
        """
        @raise ConfigurationError: what is set cannot be meant; one sentence.
        """
        if self.server_mode == DISABLED and not self.is_client:
            return
        for side, identity in (("server", self.server), ("client", self.client)):
            paths = identity.certificate_path, identity.key_path
            if any(paths) and not all(paths):
                raise ConfigurationError(
                    f"{source}: tls.{side}.certPath and tls.{side}.keyPath go together."
                )
        if self.test_mode_enable:
            if self.server_cert_path or self.server_auth_client:
                raise ConfigurationError(
                    f"{source}: tls.test.mode.enable=true would leave the certificates "
                    "that are named aside, and trust everybody: set it to false."
                )
        elif self.server_mode != DISABLED and not self.server_cert_path:
            raise ConfigurationError(
                f"{source}: tls.test.mode.enable=false needs tls.server.certPath and "
                "tls.server.keyPath, or tls.server.mode=disabled."
            )
        if self.server_need_client_auth == REQUIRE and not self.server_auth_client:
            raise ConfigurationError(
                f"{source}: tls.server.need.client.auth=require needs "
                "tls.server.authClient=true: any certificate would do without it, and "
                "anybody can make one."
            )
