# -*- test-case-name: tests.broker.access -*-
"""The room of access control: what the settings ask for."""

from __future__ import annotations

from typing import Final, final

from rocketbroker.auth.migration import migrated
from rocketbroker.auth.policies import PolicySettings, request_list
from rocketbroker.auth.policy_edits import initial_user
from rocketbroker.auth.signatures import Credentials
from rocketbroker.auth.users import Documents
from rocketbroker.auth.wanted import Release
from rocketbroker.broker.access.plain_access import PlainAccess
from rocketbroker.broker.access.plain_files import PlainFiles
from rocketbroker.broker.access.policy_access import FILE, PolicyAccess
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, always
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.remoting.request_hooks import IRequestHook

#: As often as RocketMQ looks at these files.
LOOK: Final = Service(
    "look at accounts", "files of ACL 1.0 may have changed", always(5)
)


@final
class AccessRoom(Room):
    """Who may do what.

    @ivar hooks: to stand before the requests of both ports.
    """

    def __init__(self, context: BrokerContext) -> None:
        settings = context.settings
        self._services = context.services
        self._plain: PlainAccess | None = None
        self._policies: PolicyAccess | None = None
        files = PlainFiles(context.files, settings.home)
        if settings.auth.is_on:
            self._policies = policies_of(context, files)
            self.hooks: tuple[IRequestHook, ...] = (self._policies,)
            return
        options = settings.broker
        place = {
            "brokerName": options.broker_name,
            "brokerAddr": context.address,
            "clusterName": options.broker_cluster_name,
        }
        self._plain = PlainAccess(
            files,
            context.in_thread,
            context.wall_ms,
            place,
            RefusalLog(context.clock.seconds),
        )
        self.hooks = (self._plain,)

    @property
    def refused(self) -> int:
        """How many requests were refused."""
        both = (self._plain, self._policies)
        return sum(access.refused for access in both if access is not None)

    def register(self, table: IResponderTable) -> None:
        """Answer requests about the rules."""
        for access in (self._plain, self._policies):
            if access is not None:
                access.register(table)

    def load(self) -> None:
        """I{Blocking.} Read the rules.

        @raise ConfigurationError: they are not in order; one sentence.
        """
        for access in (self._plain, self._policies):
            if access is not None:
                access.load()

    def start(self) -> None:
        """Look at the files, or keep the users that settings have made."""
        if self._plain is not None:
            self._services.begin(LOOK, self._plain.look)
        if self._policies is not None and self._policies.has_new:
            self._policies.save()


def policies_of(context: BrokerContext, files: PlainFiles) -> PolicyAccess:
    """ACL 2.0 as the settings ask for it.

    @param files: of ACL 1.0, for its accounts.
    @raise ConfigurationError: a setting makes no sense; one sentence.
    """
    options = context.settings.auth

    def migrate(documents: Documents) -> Documents:
        if not options.migrate_auth_from_v1_enabled:
            return documents
        files.load()
        return migrated(documents, files.documents)

    return PolicyAccess(
        context.tables.file(FILE, is_secret=True),
        PolicySettings(
            release=Release(options.rocketbroker_auth_release),
            cluster=context.settings.broker.broker_cluster_name,
            authentication=options.authentication_enabled,
            authorization=options.authorization_enabled,
            unauthenticated=request_list(options.authentication_whitelist),
            unauthorized=request_list(options.authorization_whitelist),
        ),
        (initial_user(options.init_authentication_user), inner_user(context.settings)),
        migrate,
        RefusalLog(context.clock.seconds),
    )


def inner_user(settings: BrokerSettings) -> Credentials | None:
    """What this broker signs with; C{None}: nothing."""
    text = settings.auth.inner_client_authentication_credentials
    return Credentials.from_json(text, "innerClientAuthenticationCredentials")
