"""The settings of ACL 2.0."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.auth import AuthOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.errors import ConfigurationError, NoPermission
from tests.config.keys import check_tables


class AuthOptionsTests(SynchronousTestCase):
    """L{AuthOptions}."""

    def test_tables(self) -> None:
        """Tables and attributes agree, and the defaults can be read back."""
        check_tables(self, AuthOptions)

    def test_oneGeneration(self) -> None:
        """Both at once refuse the start."""
        for key in "authenticationEnabled", "authorizationEnabled":
            settings = BrokerSettings.from_properties({key: "true"})
            self.assertTrue(settings.controls_access)
            with self.assertRaisesRegex(ConfigurationError, "one of the two"):
                BrokerSettings.from_properties({key: "true", "aclEnable": "true"})
        self.assertFalse(BrokerSettings.from_properties({}).controls_access)

    def test_nameServer(self) -> None:
        """It controls no access, and says so."""
        for key in "aclEnable", "authenticationEnabled", "authorizationEnabled":
            with self.assertRaisesRegex(ConfigurationError, "control no access"):
                NamesrvSettings.from_properties({key: "true"})

    def test_secrets(self) -> None:
        """No list of settings has them, and no request changes them."""
        given = {
            "initAuthenticationUser": '{"username":"u","password":"opensesame"}',
            "innerClientAuthenticationCredentials": '{"accessKey":"opensesame"}',
        }
        settings = BrokerSettings.from_properties(given)
        self.assertIn("opensesame", settings.auth.init_authentication_user)
        self.assertNotIn("opensesame", f"{settings.as_properties()} {settings.auth}")
        with self.assertRaises(NoPermission):
            settings.changed({"authorizationEnabled": "true"})
