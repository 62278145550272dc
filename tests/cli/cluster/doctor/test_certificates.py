"""Certificates as a server shows them."""

from __future__ import annotations

import datetime
import ssl

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.certificates import self_signed
from rocketbroker.cli.cluster.doctor.certificates import Certificate, read
from rocketbroker.errors import RemoteProtocolError
from tests.missing import needs


@needs("cryptography")
class ReadTests(SynchronousTestCase):
    """L{read}, of what cryptography has made."""

    def made(self, ends: datetime.datetime, issuer: str, name_count: int = 0) -> bytes:
        """A certificate of C{server}, in DER."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())

        def name(text: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

        names = [x509.DNSName(f"host-{number}") for number in range(name_count)]
        builder = (
            x509.CertificateBuilder()
            .subject_name(name("server"))
            .issuer_name(name(issuer))
            .public_key(key.public_key())
            .serial_number(7)
            .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
            .not_valid_after(ends)
            .add_extension(x509.SubjectAlternativeName(names), False)
        )
        made = builder.sign(key, hashes.SHA256())
        return made.public_bytes(serialization.Encoding.DER)

    def test_ends(self) -> None:
        """Both forms of times, and certificates of all lengths."""
        for year in (2049, 2050):
            ends = datetime.datetime(year, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
            for names in (0, 1, 10, 5000):
                found = read(self.made(ends, "somebody", names))
                ends_ms = int(ends.timestamp()) * 1000
                self.assertEqual(found, Certificate(False, ends_ms))

    def test_own(self) -> None:
        """One that nobody else has signed, as servers make them."""
        pem, _ = self_signed(["server"])
        found = read(ssl.PEM_cert_to_DER_cert(pem.decode()))
        self.assertTrue(found.is_own)

    def test_none(self) -> None:
        """Whatever is cut off, or is something else."""
        ends = datetime.datetime(2049, 1, 1, tzinfo=datetime.UTC)
        whole = self.made(ends, "somebody")
        for size in range(0, 160, 3):
            self.assertRaises(RemoteProtocolError, read, whole[:size])
        self.assertRaises(RemoteProtocolError, read, b"0\x03abc")
