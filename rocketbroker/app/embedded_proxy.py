# -*- test-case-name: tests.app.test_embedded_proxy -*-
"""The settings of the proxy beside a standalone broker, made of the broker's.

Clients of gRPC are to be who they say they are where all others are, and the proxy has
to reach a broker that wants signatures or TLS. So it is told the same, by the keys of
rmq-proxy.json.
"""

from __future__ import annotations

import json

from rocketbroker.auth.policy_edits import initial_user
from rocketbroker.broker.access.room import inner_user
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.tls import TlsOptions


def embedded_settings(settings: BrokerSettings) -> dict[str, object]:
    """What the proxy is told; there are secrets in it.

    @raise ConfigurationError: credentials make no sense; one sentence.
    """
    return {
        "rocketMQClusterName": settings.broker.broker_cluster_name,
        **_access(settings),
        **_tls(settings.tls),
    }


def _access(settings: BrokerSettings) -> dict[str, object]:
    """Whom the proxy checks, and as whom it asks: users are shown to super users, which
    both of these are."""
    auth = settings.auth
    if not auth.is_on:
        return {}
    found: dict[str, object] = {
        "authenticationEnabled": auth.authentication_enabled,
        "authenticationWhitelist": auth.authentication_whitelist,
        "authorizationEnabled": auth.authorization_enabled,
        "authorizationWhitelist": auth.authorization_whitelist,
        "rocketbrokerAuthRelease": auth.rocketbroker_auth_release,
    }
    asks = inner_user(settings) or initial_user(auth.init_authentication_user)
    if asks is not None:
        account = {"accessKey": asks.access_key, "secretKey": asks.secret_key}
        found["enableAclRpcHookForClusterMode"] = True
        found["innerClientAuthenticationCredentials"] = json.dumps(account)
    return found


def _tls(options: TlsOptions) -> dict[str, object]:
    """How the proxy speaks to this broker, which may take nothing but TLS."""
    if not options.is_client:
        return {}
    own = options.client
    return {
        "tls.enable": True,
        "tls.config.file": options.config_file,
        "tls.test.mode.enable": options.test_mode_enable,
        "tls.client.authServer": options.client_auth_server,
        "tls.client.trustCertPath": own.trust_path,
        "tls.client.certPath": own.certificate_path,
        "tls.client.keyPath": own.key_path,
        "tls.client.keyPassword": own.key_password,
    }
