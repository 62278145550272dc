"""Tests of the page of what is wrong with consumer groups."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import succeed
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.metrics.problems import ProblemsResource
from rocketbroker.metrics.samples import Samples
from rocketbroker.metrics.site import metrics_site
from rocketbroker.testing.threads import at_once

PROBLEM: dict[str, Any] = {
    "kind": "subscriptions",
    "group": "G",
    "subject": "<script>alert(1)</script>",
    "sinceMs": 1_700_000_000_000,
    "new": True,
    "leadsTo": "Nothing good.",
    "sides": [
        {
            "what": 'a && "b" \ud800',
            "count": 12,
            "members": [
                {
                    "clientId": "<b>@1",
                    "clientAddr": "10.0.0.9:4711",
                    "language": "JAVA",
                    "version": 479,
                }
            ],
        }
    ],
}


class ProblemsTests(SynchronousTestCase):
    """`/problems`."""

    def setUp(self) -> None:
        """One problem, and others that are left out."""
        self.value: dict[str, Any] = {"problems": [PROBLEM], "leftOut": 3}

    def get(self, path: str, accept: str = "*/*") -> tuple[bytes, bytes]:
        """Head and body of the answer to a GET."""
        resource = ProblemsResource(lambda: self.value)
        site = metrics_site(
            lambda names: succeed(Samples({}, names)),
            at_once,
            lambda: None,
            list,
            lambda: None,
            {b"problems": resource},
        )
        site.startFactory()
        self.addCleanup(site.stopFactory)
        channel = site.buildProtocol(None)
        assert channel is not None
        transport = StringTransport()
        channel.makeConnection(transport)
        lines = f"GET {path} HTTP/1.0\r\nHost: x\r\nAccept: {accept}\r\n\r\n"
        channel.dataReceived(lines.encode())
        head, _, body = transport.value().partition(b"\r\n\r\n")
        return head, body

    def test_page(self) -> None:
        """Who, what, since when and what it leads to; nothing of it is markup."""
        head, body = self.get("/problems", "text/html,application/json;q=0.9")
        self.assertIn(b"200 OK", head)
        self.assertIn(b"text/html; charset=utf-8", head)
        self.assertIn(b"default-src 'none'", head)
        text = body.decode()
        for part in (
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "2023-11-14 22:13:20 UTC, new",
            "Nothing good.",
            "a &amp;&amp; &quot;b&quot; ?",
            "12 members",
            "&lt;b&gt;@1",
            "v5_3_3",
            "And 3 more.",
        ):
            self.assertIn(part, text)
        self.assertNotIn("<script", text)

    def test_none(self) -> None:
        """No problems is said, too."""
        self.value = {"problems": [], "leftOut": 0}
        _, body = self.get("/problems")
        self.assertIn(b"<p>None.</p>", body)

    def test_json(self) -> None:
        """Who asks for JSON gets it: by the query or by what it accepts."""
        for path, accept in (
            ("/problems?format=json", "text/html"),
            ("/problems", "application/json"),
        ):
            head, body = self.get(path, accept)
            self.assertIn(b"application/json", head)
            self.assertEqual(json.loads(body), self.value)
