"""Addresses of this machine, and a page of a server of the test."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.address_lookup import AddressLookup


class Page(BaseHTTPRequestHandler):
    """An address server with one page."""

    def do_GET(self) -> None:
        """The page, or none."""
        self.send_response(200 if self.path == "/rocketmq/nsaddr" else 404)
        self.end_headers()
        self.wfile.write(b"a:1;b:2")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class AddressLookupTests(SynchronousTestCase):
    """L{AddressLookup}."""

    def test_resolve(self) -> None:
        """An address is its own; a name that nobody has is an error."""
        lookup = AddressLookup()
        self.assertEqual(lookup.resolve("127.0.0.1"), ["127.0.0.1"])
        self.assertIn("127.0.0.1", lookup.resolve("localhost"))
        self.assertRaises(OSError, lookup.resolve, "nobody.invalid")

    def test_own(self) -> None:
        """This machine has a loopback address at least."""
        self.assertIn("127.0.0.1", AddressLookup().own())

    def test_fetch(self) -> None:
        """The text of a page, as far as it is wanted; without a page an error."""
        server = HTTPServer(("127.0.0.1", 0), Page)
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}/rocketmq/nsaddr"
        self.assertEqual(AddressLookup().fetch(url, 100), "a:1;b:2")
        self.assertEqual(AddressLookup().fetch(url, 3), "a:1")
        self.assertRaises(OSError, AddressLookup().fetch, f"{url}/other", 100)
