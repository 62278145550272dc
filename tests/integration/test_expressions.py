"""SQL92 filters say of every message what RocketMQ's own say."""

from __future__ import annotations

import subprocess
from base64 import b64encode

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering.sql import compiled
from rocketbroker.records.properties import encode
from scripts.lab.javabroker import jars
from scripts.lab.javaclient import PROJECT, why_not
from tests.integration.expressions import Expressions

#: How many expressions are tried, each with L{MESSAGES} messages; 360,000 were, once.
EXPRESSIONS = 10_000
MESSAGES = 2
SEED = 92

SOURCE = PROJECT / "oracle" / "Evaluate.java"


def asked(expression: str, properties: dict[str, str]) -> str:
    """The line that asks Java."""
    words = [expression, *(word for pair in properties.items() for word in pair)]
    return " ".join(b64encode(word.encode()).decode("ascii") for word in words)


def ours(expression: str, properties: dict[str, str]) -> str:
    """What our filter says."""
    try:
        return "true" if compiled(expression).matches(encode(properties)) else "no"
    except SubscriptionParseFailed:
        return "refused"


class ExpressionTests(SynchronousTestCase):
    """The real evaluation beside ours."""

    def test_same(self) -> None:
        """What is refused is the same, and what matches is."""
        reason = why_not()
        if reason is not None:
            raise SkipTest(reason)
        made = Expressions(SEED)
        cases = []
        for _ in range(EXPRESSIONS):
            expression = made.one()
            cases += [(expression, made.properties()) for _ in range(MESSAGES)]
        done = subprocess.run(
            ["java", "-cp", f"{jars('5.3.3', 'broker')}/*", str(SOURCE)],
            input="".join(asked(*case) + "\n" for case in cases),
            capture_output=True,
            text=True,
        )
        answers = done.stdout.splitlines()
        self.assertEqual(len(answers), len(cases), done.stderr)
        different = [
            (*case, answer, found)
            for case, answer in zip(cases, answers, strict=True)
            if (found := ours(*case))
            != (answer if answer in ("true", "refused") else "no")
        ]
        self.assertEqual(different, [])
        # The cases are worth it: enough of them come to each end.
        for answer in ("true", "false", "null", "threw", "refused"):
            self.assertGreater(answers.count(answer), len(cases) // 50, answer)
