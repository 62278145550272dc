# -*- test-case-name: tests.proxy.test_inner_client -*-
"""The inner client: how the proxy asks brokers and name servers, in whose name, by TLS.

What is signed is signed for C{innerClientAuthenticationCredentials}; where that is not
set, for the account of C{conf/tools.yml} below C{ROCKETMQ_HOME}, as of RocketMQ's
command line. C{docs/facts/proxy.md} 12.1; C{docs/facts/security-metrics.md} 4.
"""

from __future__ import annotations

import os
from typing import Final

import attrs

from rocketbroker.auth.signatures import Credentials
from rocketbroker.client.settings import ClientSettings
from rocketbroker.config.tls import DISABLED, TlsOptions
from rocketbroker.errors import ConfigurationError
from rocketbroker.proxy.settings import KEYS, ProxySettings
from rocketbroker.wire import fastjson
from rocketbroker.wire.fields import Fields

#: How often brokers hear that we are a producer of topics with transactions.
HEARTBEAT_SECONDS: Final = 20.0

#: The setting with an account and its secret.
CREDENTIALS: Final = "innerClientAuthenticationCredentials"

#: The switch that lets it count.
SIGNS: Final = "enableAclRpcHookForClusterMode"

#: The account of RocketMQ's command line, below ROCKETMQ_HOME.
TOOLS: Final = os.path.join("conf", "tools.yml")


def with_tools_account(settings: ProxySettings, home: str) -> ProxySettings:
    """I{Blocking.} Settings with the account of C{tools.yml}, if they name none.

    @param home: ROCKETMQ_HOME, empty if there is none.
    @raise ConfigurationError: requests are to be signed, and there is no account.
    """
    if not settings.enable_acl_rpc_hook_for_cluster_mode or credentials_of(settings):
        return settings
    path = os.path.join(home or "ROCKETMQ_HOME", TOOLS)
    text = fastjson.dumps(_tools_account(path) if home else {}).decode()
    found = attrs.evolve(settings, inner_client_authentication_credentials=text)
    if credentials_of(found) is None:
        raise ConfigurationError(
            f"{SIGNS} needs {CREDENTIALS}, or accessKey and secretKey in {path}."
        )
    return found


def _tools_account(path: str) -> dict[str, str | None]:
    """The account of a file, as far as it has one."""
    # YAML takes memory that nobody else here needs.
    from rocketbroker.auth.plain_documents import read

    try:
        with open(path, encoding="utf-8") as file:
            fields = Fields(read(path, file.read()).members, path)
    except (OSError, UnicodeDecodeError):
        return {}
    return {name: fields.text(name) for name in ("accessKey", "secretKey")}


def credentials_of(settings: ProxySettings) -> Credentials | None:
    """What requests are signed with; C{None}: they are not.

    @raise ConfigurationError: the setting makes no sense; one sentence.
    """
    if not settings.enable_acl_rpc_hook_for_cluster_mode:
        return None
    text = settings.inner_client_authentication_credentials
    return Credentials.from_json(text, CREDENTIALS)


def client_settings(
    name_servers: tuple[str, ...], settings: ProxySettings
) -> ClientSettings:
    """The settings of the client that asks brokers.

    @raise ConfigurationError: an account or a file of TLS is not in order.
    """
    credentials = credentials_of(settings)
    plain = ClientSettings(
        name_servers=name_servers,
        namespace="",
        heartbeat_seconds=HEARTBEAT_SECONDS,
        access_key=None if credentials is None else credentials.access_key,
        secret_key=None if credentials is None else credentials.secret_key,
        security_token=None if credentials is None else credentials.security_token,
    )
    return with_tls(plain, settings)


def with_tls(plain: ClientSettings, settings: ProxySettings) -> ClientSettings:
    """The same, with TLS if C{tls.enable} says so.

    @raise ConfigurationError: a file is not in order; one sentence.
    """
    if not settings.tls_enable:
        return plain
    options = TlsOptions.read(tls_properties(settings), "rmq-proxy.json")
    if options.test_mode_enable:
        return attrs.evolve(plain, tls=True, tls_verify=False)
    own = options.client
    return attrs.evolve(
        plain,
        tls=True,
        tls_verify=options.client_auth_server,
        tls_ca=own.trust_path if options.client_auth_server else None,
        tls_certificate=own.certificate_path,
        tls_key=own.key_path,
        tls_key_password=own.key_password,
    )


def tls_properties(settings: ProxySettings) -> dict[str, str]:
    """What settings say of this side of TLS, by RocketMQ's names; the other side is
    the port's for gRPC, which has keys of its own."""
    found = {"tls.server.mode": DISABLED}
    for key, name in KEYS.items():
        if key.startswith(("tls.client.", "tls.enable", "tls.test.")):
            value = getattr(settings, name)
            found[key] = str(value).lower() if isinstance(value, bool) else value
    default = attrs.fields_dict(ProxySettings)["tls_config_file"].default
    if settings.tls_config_file != default:
        found["tls.config.file"] = settings.tls_config_file
    return {key: value for key, value in found.items() if value}
