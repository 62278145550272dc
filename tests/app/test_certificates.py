"""Certificates of servers, in files of a directory."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.certificates import (
    CertificateFiles,
    context_of,
    own_context,
    self_signed,
    write_own,
)
from rocketbroker.errors import ConfigurationError
from tests.missing import needs


def certificate_seen(context: ssl.SSLContext) -> bytes:
    """The certificate that a client is shown."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    client = trusting.wrap_bio(back, there)
    server = context.wrap_bio(there, back, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return client.getpeercert(binary_form=True) or b""


@needs("cryptography")
class FilesTests(SynchronousTestCase):
    """L{CertificateFiles}."""

    def setUp(self) -> None:
        """A certificate and its key in two files."""
        folder = Path(self.mktemp())
        folder.mkdir()
        self.paths = folder / "a.crt", folder / "a.key"
        self.write(*self_signed(["first"]))
        one, other = map(str, self.paths)
        self.files = CertificateFiles(
            [one, other], lambda: context_of(one, other, ["h2"])
        )

    def write(self, *contents: bytes) -> None:
        """Put new files in their places."""
        for path, content in zip(self.paths, contents, strict=True):
            new = path.with_suffix(".new")
            new.write_bytes(content)
            os.replace(new, path)

    def test_renewedFilesAreTakenForTheNextHandshake(self) -> None:
        """Without a start."""
        before = certificate_seen(self.files.context)
        self.files.look()
        self.assertEqual(certificate_seen(self.files.context), before)
        pem, key = self_signed(["second"])
        self.write(pem, key)
        self.files.look()
        wanted = ssl.PEM_cert_to_DER_cert(pem.decode())
        self.assertEqual(certificate_seen(self.files.context), wanted)

    def test_badFilesChangeNothing(self) -> None:
        """The log says so once; what comes after is taken."""
        before = certificate_seen(self.files.context)
        pem, key = self_signed(["second"])
        self.paths[0].write_bytes(pem)  # the key is still that of the other one
        self.files.look()
        self.files.look()
        self.assertEqual(certificate_seen(self.files.context), before)
        self.paths[1].write_bytes(key)
        self.files.look()
        self.assertNotEqual(certificate_seen(self.files.context), before)

    def test_whatCannotBeUsedIsOneSentence(self) -> None:
        """At a start."""
        self.paths[1].write_bytes(b"none")
        for path, words in (
            (str(self.paths[0]), "are no certificate and its key in PEM, without a "),
            ("/nowhere", "/nowhere cannot be read: No such file or directory."),
        ):
            problem = self.assertRaises(
                ConfigurationError, context_of, path, str(self.paths[1]), ["h2"]
            )
            self.assertIn(words, str(problem))


@needs("cryptography")
class OwnCertificateTests(SynchronousTestCase):
    """L{own_context}."""

    def test_itIsForThisMachine(self) -> None:
        """So a client of this machine that is given it as a root may check it."""
        shown = certificate_seen(own_context(["h2"], write_own))
        root = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        root.load_verify_locations(cadata=shown)
        self.assertIn(b"localhost", shown)
        self.assertIn(b"\x7f\x00\x00\x01", shown)
