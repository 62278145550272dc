"""A cluster that speaks only TLS and controls access, for tests at real ports."""

from __future__ import annotations

from pathlib import Path

from rocketbroker.app.certificates import self_signed
from scripts.lab.servers import Cluster

#: Accounts of ACL 1.0; the secrets appear in nothing that a user sees.
ACCOUNTS = """
accounts:
- accessKey: administrator
  secretKey: hidden-admin-secret
  admin: true
- accessKey: application
  secretKey: hidden-app-secret
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms: [Orders=PUB|SUB]
  groupPerms: [billing=SUB, TOOLS_CONSUMER=SUB]
"""

#: Settings of a broker with users of ACL 2.0, of whom there are two.
POLICIES = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"root","password":"hidden-root-secret"}',
    "innerClientAuthenticationCredentials": (
        '{"accessKey":"inner","secretKey":"hidden-inner-secret"}'
    ),
}


class SecuredCluster:
    """One, with a directory of files.

    @ivar ca: the certificate of both servers.
    @ivar cluster: it is not started.
    """

    def __init__(self, folder: Path, **settings: object) -> None:
        """
        @param folder: one that is not there.
        @param settings: more of them, of the broker.
        """
        self.folder = folder.absolute()
        (self.folder / "conf").mkdir(parents=True)
        (self.folder / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
        self.ca, key = self.folder / "server.crt", self.folder / "server.key"
        made = self_signed(["server", "127.0.0.1"])
        for path, content in zip((self.ca, key), made, strict=True):
            path.write_bytes(content)
        tls: dict[str, object] = {
            "tls.server.mode": "enforcing",
            "tls.test.mode.enable": "false",
            "tls.server.certPath": self.ca,
            "tls.server.keyPath": key,
        }
        control = {"aclEnable": "true", "rocketmqHome": self.folder}
        self.cluster = Cluster(**tls, **(settings or control))
        self.cluster.namesrv.set(**tls)

    @property
    def names(self) -> str:
        """The name server."""
        return self.cluster.names

    def variables(
        self, key: str = "administrator", secret: str = "hidden-admin-secret"
    ) -> dict[str, str]:
        """Variables with which clients are served."""
        return {
            "ROCKETMQ_CLIENT_TLS": "true",
            "ROCKETMQ_CLIENT_TLS_CA": str(self.ca),
            "ROCKETMQ_CLIENT_ACCESS_KEY": key,
            "ROCKETMQ_CLIENT_SECRET_KEY": secret,
        }
