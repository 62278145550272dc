"""Secrets in files."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.files.secret_file import SecretFile


class SecretFileTests(SynchronousTestCase):
    """L{SecretFile}."""

    def setUp(self) -> None:
        """A file with a secret, as an editor writes it."""
        self.path = Path(self.mktemp())
        self.path.write_bytes(b" open sesame\n")

    def test_blanksAroundDoNotCount(self) -> None:
        """The line end is not part of the secret; everything else is."""
        secret = SecretFile(str(self.path), "haSecretFile")
        self.assertTrue(secret.is_secret(b"open sesame"))
        for wrong in (b"", b"open sesam", b"open sesame\n", b"Open sesame", b"\xff"):
            self.assertFalse(secret.is_secret(wrong))

    def test_badFileIsOneSentence(self) -> None:
        """It names the file and the setting, and nothing of the content."""
        for content, words in ((None, "cannot be read"), (b" \n", "is empty")):
            self.path.unlink(missing_ok=True)
            if content is not None:
                self.path.write_bytes(content)
            error = self.assertRaises(
                ConfigurationError, SecretFile, str(self.path), "haSecretFile"
            )
            self.assertIn(f"{self.path} (haSecretFile) {words}", str(error))

    def test_newContentIsTaken(self) -> None:
        """With the next look; a file that is not in order changes nothing, once."""
        secret = SecretFile(str(self.path), "haSecretFile")
        new = self.path.with_suffix(".new")
        new.write_bytes(b"other")
        os.replace(new, self.path)
        self.assertTrue(secret.is_secret(b"open sesame"))
        secret.look()
        self.assertTrue(secret.is_secret(b"other"))
        self.path.unlink()
        self.assertRaises(ConfigurationError, secret.look)
        secret.look()
        self.assertTrue(secret.is_secret(b"other"))
