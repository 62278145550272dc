# -*- test-case-name: tests.config.test_auth -*-
"""The settings of ACL 2.0: whether users are known, and whether they need policies.

C{docs/facts/security-metrics.md 3.1}. RocketMQ names Java classes that keep users and
policies, and how; here both stand in one table of the broker, whatever they say.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from rocketbroker.config.keyed import KeyedOptions

#: Releases whose order of policies may hold.
RELEASES = ("5.3", "5.4")


@attrs.frozen(kw_only=True, eq=False)
class AuthOptions(KeyedOptions):
    """Who may do what, by users and policies."""

    CHOICES: ClassVar = {"rocketbroker_auth_release": RELEASES}
    SECRETS: ClassVar = frozenset(
        {"init_authentication_user", "inner_client_authentication_credentials"}
    )
    ABOUT: ClassVar = {
        "authentication_enabled": "requests are signed by users who are known here "
        "(docs/security.rst)",
        "authentication_whitelist": "request codes that need no signature, between "
        "commas",
        "init_authentication_user": 'the first super user, {"username":"u",'
        '"password":"p"}: made at the start unless it is there',
        "inner_client_authentication_credentials": "signs what this broker asks of "
        'others, {"accessKey":"u","secretKey":"p"}: made a super user at the start',
        "authorization_enabled": "users need policies for what they do",
        "authorization_whitelist": "request codes that need no policy, between commas",
        "migrate_auth_from_v1_enabled": "at the start make users and policies of the "
        "accounts of ACL 1.0 that are no users yet",
        "rocketbroker_auth_release": "of several policies that fit, the one decides "
        "that RocketMQ of this release would choose: 5.3, or 5.4 (ours)",
    }

    authentication_enabled: bool = False
    authentication_provider: str = ""
    authentication_metadata_provider: str = ""
    authentication_strategy: str = ""
    authentication_whitelist: str = ""
    init_authentication_user: str = attrs.field(default="", repr=False)
    inner_client_authentication_credentials: str = attrs.field(default="", repr=False)
    authorization_enabled: bool = False
    authorization_provider: str = ""
    authorization_metadata_provider: str = ""
    authorization_strategy: str = ""
    authorization_whitelist: str = ""
    migrate_auth_from_v1_enabled: bool = False
    user_cache_max_num: int = 1000
    user_cache_expired_second: int = 600
    user_cache_refresh_second: int = 60
    acl_cache_max_num: int = 1000
    acl_cache_expired_second: int = 600
    acl_cache_refresh_second: int = 60
    stateful_authentication_cache_max_num: int = 10000
    stateful_authentication_cache_expired_second: int = 60
    stateful_authorization_cache_max_num: int = 10000
    stateful_authorization_cache_expired_second: int = 60
    rocketbroker_auth_release: str = "5.3"

    @property
    def is_on(self) -> bool:
        """Whether users are asked for anything."""
        return self.authentication_enabled or self.authorization_enabled
