"""S3 on a port of this machine: moto's server, which can be told to refuse."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from pyarrow import fs
from werkzeug.serving import make_server

#: What AWS's libraries look for in the environment of each process.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
}

DENIED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"""


class S3Server:
    """The server.

    @ivar refused_step: the first signs of requests that are denied: of method, a space
        and query.
    """

    def __init__(self) -> None:
        self.refused_step: str | None = None
        self._moto = DomainDispatcherApplication(create_backend_app)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = make_server(
            "127.0.0.1", 0, self._answer, True, request_handler=MotoRequestHandler
        )
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        bucket, _ = fs.FileSystem.from_uri(self.uri("") + "&allow_bucket_creation=true")
        bucket.create_dir("lake")

    def uri(self, path: str) -> str:
        """The address of a path in the bucket C{lake}."""
        return (
            f"s3://lake/{path}?endpoint_override=127.0.0.1:{self._server.port}"
            "&scheme=http&region=us-east-1"
        )

    def _answer(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        step = f"{environ['REQUEST_METHOD']} {environ['QUERY_STRING']}"
        if self.refused_step is not None and step.startswith(self.refused_step):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [DENIED]
        answer: Iterable[bytes] = self._moto(environ, start)
        return answer

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def running_s3() -> Iterator[S3Server]:
    """The server, with credentials for it in the environment."""
    before = {name: os.environ.get(name) for name in CREDENTIALS}
    os.environ.update(CREDENTIALS)
    server = S3Server()
    try:
        yield server
    finally:
        server.stop()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
