"""Bodies of requests and answers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_bodies import body_in_steps, decoded, with_body
from rocketbroker.errors import SystemFailure
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import (
    MAX_LENIENT_TURN_BODY,
    MAX_TURN_BODY,
)
from rocketbroker.wire.steps import finished


class BodyTests(SynchronousTestCase):
    """JSON in, JSON out."""

    def test_decoded(self) -> None:
        """A body becomes the value that it stands for."""
        request = Command(1, body=b'{"counter":3}')
        self.assertEqual(
            decoded(request, DataVersion.from_json), DataVersion(counter=3)
        )

    def test_wrong(self) -> None:
        """What is missing, no JSON, or another thing is answered with the reason."""
        for body in (b"", b"{", b"\xff", b"7", b"[" * 100000):
            with self.assertRaises(SystemFailure) as caught:
                decoded(Command(1, body=body), DataVersion.from_json)
            self.assertIn("body", caught.exception.remark)

    def test_lenientLength(self) -> None:
        """A long body in the dialect is refused before it is read."""
        body = b"{1:" + b" " * MAX_LENIENT_TURN_BODY + b"2}"
        with self.assertRaises(SystemFailure) as caught:
            decoded(Command(1, body=body), DataVersion.from_json)
        self.assertIn("not strict JSON", caught.exception.remark)

    def test_longBodyIsNotReadInOneTurn(self) -> None:
        """A body beyond what one turn reads is refused in words."""
        body = b'{"counter":3}'
        longest = body + b" " * (MAX_TURN_BODY - len(body))
        decoded(Command(1, body=longest), DataVersion.from_json)
        with self.assertRaises(SystemFailure) as caught:
            decoded(Command(1, body=longest + b" "), DataVersion.from_json)
        self.assertIn("read at once", caught.exception.remark)

    def test_longBodyIsReadInSteps(self) -> None:
        """In steps, a long body becomes its value, and a bad one the same answer."""
        body = b'{"a":[%s 0]}' % (b"'x', " * MAX_LENIENT_TURN_BODY)
        value = finished(body_in_steps(Command(1, body=body)))
        self.assertEqual(value, {"a": ["x"] * MAX_LENIENT_TURN_BODY + [0]})
        for wrong in (b"", body[:-1]):
            with self.assertRaises(SystemFailure) as caught:
                finished(body_in_steps(Command(1, body=wrong)))
            self.assertIn("body", caught.exception.remark)

    def test_withBody(self) -> None:
        """An answer carries JSON, and no extension fields but those given."""
        answer = with_body(Command(1, opaque=5), {"a": [1]})
        self.assertEqual((answer.code, answer.opaque, answer.ext), (0, 5, None))
        self.assertEqual(answer.body, b'{"a":[1]}')
