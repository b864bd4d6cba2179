"""A server on loopback that speaks S3's protocol (moto's), for the length of a context."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from typing import Any


class Stores:
    """A running server; `bucket()` gives the URL of a new, empty folder in it, `files` its content."""

    _numbers = count()  # of all servers of this process: what moto keeps outlives the server

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def bucket(self) -> str:
        name = f"board{next(self._numbers)}"
        self._client.mkdir(name)
        return f"s3://{name}/kept"

    def files(self, url: str) -> list[str]:
        position = url.removeprefix("s3://")
        return sorted(path.removeprefix(f"{position}/") for path in self._client.find(position))

    def overwrite(self, url: str, path: str, content: bytes | None) -> None:
        """Put other bytes in the place of a file, or delete it."""
        position = f"{url.removeprefix('s3://')}/{path}"
        if content is None:
            self._client.rm_file(position)
        else:
            self._client.pipe_file(position, content)

    @cached_property
    def _client(self) -> Any:
        from fsspec import filesystem

        return filesystem("s3", use_listings_cache=False, skip_instance_cache=True)


@contextmanager
def storing() -> Iterator[Stores]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "owner",
        "AWS_SECRET_ACCESS_KEY": "not-to-be-seen",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield Stores(environment)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        server.stop()
