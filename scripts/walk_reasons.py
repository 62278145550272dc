"""Which steps of the pages are not run as they stand, and why.

An entry names a page and the beginning of a step, and fails C{scripts/walk.py} and
C{tests.test_walk} when no step begins so any more.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from scripts.walk_pages import Step


class Reason(NamedTuple):
    """Why a step is left out.

    @ivar page: the page.
    @ivar start: the beginning of the step; all of it if it ends with a new line.
    @ivar text: the reason, for people.
    """

    page: str
    start: str
    text: str

    def fits(self, step: Step) -> bool:
        """Whether it speaks of a step."""
        return step.page == self.page and f"{step.text}\n".startswith(self.start)


SUITE: Final = "continuous integration runs it for each commit, and this is part of it"
SYNOPSIS: Final = "a synopsis: tests.test_walk compares its options with the command's"
SYSTEMD: Final = "needs systemd as the first process"
UNITS: Final = f"{SYSTEMD}: in the bare form its units' programs are started instead"
AWAY: Final = (
    "needs a second broker that is away: tests.cli.cluster.test_cluster has its words"
)
ENGINE: Final = "needs an engine for containers and their images"
CELERY: Final = "needs Celery, and what it keeps its tasks in"
ENDLESS: Final = "runs until it is stopped: tests.integration.test_examples stops it"
PROGRAMS: Final = "tests.integration.test_testing runs its programs"
TRAVEL: Final = "a part of a program: tests.integration.test_time_travel does the same"
MACHINE: Final = "needs a second machine"
SOCKET: Final = "tests.integration.test_proxy_systemd starts a proxy as the units do"

#: Of commands to a cluster with TLS and access control.
SECURED: Final = "test_secured_commands does it, at a cluster with TLS and accounts"

#: What is not run in any form.
REASONS: Final[tuple[Reason, ...]] = (
    Reason("README.rst", "python3 scripts/test.py", SUITE),
    Reason("docs/operations.rst", "systemctl daemon-reload", SYSTEMD),
    Reason("docs/operations.rst", "systemctl enable --now ", UNITS),
    Reason("docs/operations.rst", "systemctl restart ", UNITS),
    Reason("docs/proxy.rst", "systemctl enable --now ", SOCKET),
    Reason("docs/operations.rst", '{"event":"ready"', "a line that servers print"),
    Reason(
        "docs/operations.rst", '{"proxyMode"', "RocketMQ's: test_java_proxy uses it"
    ),
    Reason("docs/security.rst", "tls.server", "settings: test_tls uses them"),
    Reason("docs/security.rst", "# ", "steps: test_security_page follows them"),
    Reason("docs/proxy.rst", '{"namesrvAddr"', "test_proxy_access has the same"),
    Reason("docs/command-line.rst", "rocketbroker context set live", SECURED),
    Reason("docs/command-line.rst", "ROCKETMQ_CLIENT_TLS=", SECURED),
    Reason("docs/command-line.rst", "rocketbroker user create", SECURED),
    Reason("docs/command-line.rst", "rocketbroker acl create", SECURED),
    Reason("docs/spark.rst", '.option("tls"', "test_secured_exports gives them"),
    Reason("docs/metrics.rst", "scheme: https", "test_prometheus has the same"),
    Reason("docs/security.rst", "authentication", "settings: test_access uses them"),
    Reason("docs/security.rst", "globalWhite", "accounts: test_access uses them"),
    Reason("docs/architecture.rst", "   clients, consoles", "a drawing"),
    Reason("docs/command-line.rst", "rocketbroker: since ", "what a command says"),
    Reason("docs/command-line.rst", "rocketbroker group show billing\n", AWAY),
    Reason(
        "docs/clients.rst",
        "import asyncio\n\nfrom rocketbroker.aio import ReceivedMessage, connect\n\n"
        'mq = connect("127.0.0.1:9876")\n\n\n@mq.on("Orders"',
        ENDLESS,
    ),
    Reason("docs/web.rst", "from ", CELERY),
    Reason("docs/testing-faults.rst", "from rocketbroker", TRAVEL),
    Reason("docs/testing-faults.rst", '{"action"', TRAVEL),
    Reason("docs/container.rst", "docker ", ENGINE),
    Reason("docs/container.rst", "podman ", ENGINE),
    Reason("docs/container.rst", "buildah ", ENGINE),
    Reason("docs/container.rst", "kubectl ", ENGINE),
    Reason("docs/container.rst", "pip install . && rocketbroker", "two of README.rst"),
    Reason("docs/export.rst", "/data/lake/Orders/dt=", "a listing of files"),
    Reason(
        "docs/performance.rst",
        "python3 scripts/bench/benchmark.py",
        "needs RocketMQ's broker",
    ),
    Reason("docs/repair.rst", "rocketbroker store ", SYNOPSIS),
    Reason("docs/replication.rst", "for file in $(ssh MASTER", MACHINE),
    Reason("docs/testing.rst", "", PROGRAMS),
    Reason("docs/replication.rst", "This broker does not follow", "what a log says"),
)

QUICKSTART: Final = "tests.integration.test_quickstart runs it small"
COMPILED: Final = "compiles for two minutes"
PAGES: Final = "tests.integration.test_pages runs it"
EXAMPLES: Final = "tests.integration.test_examples runs it"
TESTED: Final = "the environment of the tests has it"
AGAIN: Final = "as the installation of README.rst, which is run"

#: What is left out besides in the form for continuous integration.
ELSEWHERE: Final[tuple[Reason, ...]] = (
    Reason("README.rst", "python3 scripts/quickstart.py", QUICKSTART),
    Reason("README.rst", "pip install '.[spark]'", TESTED),
    Reason("README.rst", "pip install '.[arrow]' duckdb", TESTED),
    Reason("README.rst", "python3 scripts/wheel.py", COMPILED),
    Reason("README.rst", "rocketbroker export run Orders Payments --store", PAGES),
    Reason("docs/operations.rst", "python3 -m venv /opt/", AGAIN),
    Reason("docs/operations.rst", "/opt/rocketbroker-0.1/bin/pip install .", AGAIN),
    Reason("docs/operations.rst", "/opt/rocketbroker-0.2/bin/pip install .", AGAIN),
    Reason("docs/operations.rst", "/opt/rocketbroker/bin/", AGAIN),
    Reason("docs/operations.rst", "ln -s /opt/", "/usr is this machine's there"),
    Reason("docs/clients.rst", "", EXAMPLES),
    Reason("docs/upgrading.rst", "", EXAMPLES),
    Reason("docs/web.rst", "", EXAMPLES),
    Reason("docs/container.rst", "pip wheel ", AGAIN),
    Reason("docs/export.rst", "", PAGES),
    Reason("docs/spark.rst", "", PAGES),
)


def reason_for(step: Step, is_short: bool) -> str:
    """Why a step is left out; empty if it is run.

    @param is_short: whether the form is the one for continuous integration.
    """
    table = REASONS + ELSEWHERE if is_short else REASONS
    return next((reason.text for reason in table if reason.fits(step)), "")


def stale(steps: list[Step]) -> list[Reason]:
    """The entries that speak of no step any more."""
    return [
        reason
        for reason in (*REASONS, *ELSEWHERE)
        if not any(reason.fits(step) for step in steps)
    ]
