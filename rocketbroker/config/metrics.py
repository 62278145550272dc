# -*- test-case-name: tests.config.test_metrics -*-
"""The settings of access to the pages of the metrics port; all of them are ours.

Scrapers expect plain text and no password, so that is the default.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from rocketbroker.config.keyed import KeyedOptions
from rocketbroker.config.paths import resolved
from rocketbroker.config.tls import DISABLED, ENFORCING, NONE, PERMISSIVE, TlsOptions
from rocketbroker.errors import ConfigurationError


@attrs.frozen(kw_only=True, eq=False)
class MetricsAccessOptions(KeyedOptions):
    """Who is answered at the port of C{/metrics}, and how it is asked."""

    CHOICES: ClassVar = {"metrics_tls": (DISABLED, PERMISSIVE, ENFORCING)}
    PATHS: ClassVar = {"metrics_bearer_token_file": resolved}
    ABOUT: ClassVar = {
        "metrics_tls": "whether /metrics and the other pages speak TLS, with the "
        "certificate of tls.server.certPath: disabled, permissive (with and without), "
        "enforcing (ours)",
        "metrics_bearer_token_file": "a file whose content /metrics, /problems and "
        "/healthz want as a bearer token; /healthz/live and /healthz/ready stay open "
        "(ours)",
        "metrics_client_certificate": "they are open to clients with a certificate "
        "that tls.server.trustCertPath has signed, and with a token file to those that "
        "show the token (ours)",
    }

    metrics_tls: str = DISABLED
    metrics_bearer_token_file: str | None = None
    metrics_client_certificate: bool = False

    def check(self, tls: TlsOptions, source: str) -> None:
        """
        @param tls: the settings of the server's TLS.
        @param source: the file's name in the error.
        @raise ConfigurationError: what is set cannot be meant; one sentence.
        """
        if self.metrics_tls != DISABLED and tls.server_mode == DISABLED:
            raise ConfigurationError(
                f"{source}: metricsTls={self.metrics_tls} needs tls.server.mode="
                f"{PERMISSIVE} or {ENFORCING}: it has no certificate of its own."
            )
        if not self.metrics_client_certificate:
            return
        asks = tls.server_auth_client and tls.server_need_client_auth != NONE
        if self.metrics_tls == DISABLED or not asks:
            raise ConfigurationError(
                f"{source}: metricsClientCertificate=true needs metricsTls, "
                "tls.server.authClient=true, and tls.server.need.client.auth=optional "
                "or require: clients are asked for no certificate otherwise."
            )
