# -*- test-case-name: tests.integration.test_testing -*-
"""The fixture C{rocketmq} of pytest, and the broker's part of a failed test's report.

pytest imports it wherever rocketbroker is installed, so it imports nothing of ours
before a test wants the fixture.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rocketbroker.testing.brokers.broker import Broker


@pytest.fixture
def rocketmq() -> Iterator[Broker]:
    """A RocketMQ broker, with topics and groups of this test's own."""
    from rocketbroker.testing.brokers.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the brokers of a test that failed, of this fixture or of the user's own."""
    report = yield
    module = sys.modules.get("rocketbroker.testing.brokers.broker")
    if report.failed and call.when != "teardown" and module is not None:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, module.Broker) and value.is_open:
                report.sections.append((f"broker {name}", value.report()))
    return report
