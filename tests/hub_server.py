"""A small server that speaks the Hugging Face Hub's protocol for one data set and a model of its files, on loopback, with
planned faults.

Enough for the real `huggingface_hub` and `datasets`: revisions, listings, `resolve` with the redirect of large files to
a second address, ranges, validators. Protocol: https://huggingface.co/docs/hub/api. Content without that protocol is
under `/plain/<revision>/<path>`, as any file server has it.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

from hub_answers import send
from hub_faults import Faults, Refuse
from loopback import listening

REPOSITORY = "farshift/rows"
_LARGE = (".parquet", ".tar")  # kept apart from the repository, as Git LFS does


class Request(NamedTuple):
    method: str
    path: str
    range: str | None


class Missing(Exception):
    """What the Hub says of something it does not have; the argument is its error code."""


@dataclass
class Hub:
    """One data set: commits of files, and branches that name commits and can be moved at any time."""

    url: str = ""
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    requests: list[Request] = field(default_factory=list)
    xet: str = ""  # the address of a Xet store that large files are said to be in; none if empty
    card: Any = None  # the head of README.md, parsed
    closing: threading.Event = field(default_factory=threading.Event)

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """A commit that holds exactly these files; the branch is moved to it. Returns its 40 hex digits."""
        listed = json.dumps([len(self.commits), {path: git_blob(files[path]) for path in sorted(files)}])
        name = sha1(listed.encode()).hexdigest()
        self.commits[name] = dict(files)
        self.branches[branch] = name
        return name

    def commit_folder(self, folder: Path, under: str = "", branch: str = "main") -> str:
        """A commit of a folder's files."""
        return self.commit({f"{under}{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}, branch)

    def at(self, revision: str) -> tuple[str, dict[str, bytes]]:
        """The commit that a branch or commit names, and its files."""
        name = self.branches.get(revision, revision)
        if name not in self.commits:
            raise Missing("RevisionNotFound")
        return name, self.commits[name]

    def plain(self, path: str = "", revision: str = "main") -> str:
        """The address of a file, or of the folder, on a server that knows nothing of revisions."""
        return f"{self.url}/plain/{revision}/{path}".rstrip("/")

    def resolve(self, path: str = "", revision: str = "main") -> str:
        """The Hub's public address of a file, or of all files."""
        return f"{self.url}/datasets/{REPOSITORY}/resolve/{revision}/{path}".rstrip("/")

    def large(self, digest: str, path: str) -> bytes:
        """A large file by its sha256."""
        for files in self.commits.values():
            if path in files and sha256(files[path]).hexdigest() == digest:
                return files[path]
        raise Missing("EntryNotFound")


def git_blob(content: bytes) -> str:
    """The name that Git gives a file's content."""
    return sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _entry(path: str, content: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(content), "oid": git_blob(content)}
    if path.endswith(_LARGE):
        entry["lfs"] = {"oid": sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
    return entry


def _tree(files: dict[str, bytes], folder: str, recursive: bool) -> list[dict[str, Any]]:
    """The files and folders below a folder, sorted by path."""
    start = f"{folder}/" if folder else ""
    below = {path: content for path, content in files.items() if path.startswith(start)}
    if folder and not below:
        raise Missing("EntryNotFound")
    entries: dict[str, dict[str, Any]] = {}
    for path, content in below.items():
        names = path.removeprefix(start).split("/")
        for depth in range(1, len(names) if recursive else min(len(names), 2)):
            inner = start + "/".join(names[:depth])
            entries[inner] = {"type": "directory", "path": inner, "oid": git_blob(inner.encode()), "size": 0}
        if recursive or len(names) == 1:
            entries[path] = _entry(path, content)
    return [entries[path] for path in sorted(entries)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.asked = f"{self.command} {path}"
        self.query = {key: values[-1] for key, values in parse_qs(urlsplit(self.path).query).items()}
        self.form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
        self.hub.requests.append(Request(self.command, path, self.headers.get("Range")))
        try:
            for pattern, route in _ROUTES:
                if result := re.fullmatch(pattern, path):
                    return route(self, **result.groupdict(default=""))
            raise Missing("RepoNotFound" if path.startswith(("/api/datasets/", "/datasets/")) else "")
        except Missing as missing:
            self.refuse(Refuse(404), {"X-Error-Code": str(missing)} if str(missing) else {})

    def refuse(self, fault: Refuse, headers: dict[str, str] | None = None) -> None:
        output = {} if fault.retry_after is None else {"Retry-After": fault.retry_after}
        self.head(fault.status, {"Content-Length": "0"} | output | (headers or {}))

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _json(self, document: Any) -> None:
        fault = self.hub.faults.take(self.asked)
        if isinstance(fault, Refuse):
            return self.refuse(fault)
        send(self, json.dumps(document).encode(), {"Content-Type": "application/json"}, fault)

    def information(self, revision: str = "main") -> None:
        commit, files = self.hub.at(revision)
        siblings = [{"rfilename": path} for path in sorted(files)]
        self._json(
            {
                "id": REPOSITORY,
                "sha": commit,
                "private": False,
                "gated": False,
                "disabled": False,
                "tags": [],
                "downloads": 0,
                "likes": 0,
                "lastModified": "2024-01-01T00:00:00.000Z",
                "siblings": siblings,
                "cardData": self.hub.card,
            }
        )

    def references(self) -> None:
        branches = [
            {"name": name, "ref": f"refs/heads/{name}", "targetCommit": commit}
            for name, commit in sorted(self.hub.branches.items())
        ]
        self._json({"branches": branches, "converts": [], "tags": []})

    def tree(self, revision: str, folder: str) -> None:
        _, files = self.hub.at(revision)
        self._json(_tree(files, folder, self.query.get("recursive", "").lower() in ("true", "1")))

    def paths(self, revision: str) -> None:
        _, files = self.hub.at(revision)
        everything = {entry["path"]: entry for entry in _tree(files, "", True)}
        self._json([everything[path] for path in self.form.get("paths", []) if path in everything])

    def resolved(self, revision: str, path: str) -> None:
        """A small file itself; for a large one, where it is."""
        commit, files = self.hub.at(revision)
        if path not in files:
            return self.refuse(Refuse(404), {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
        content, output = files[path], {"X-Repo-Commit": commit}
        if not path.endswith(_LARGE):
            return self._file(content, output | {"ETag": f'"{git_blob(content)}"'})
        fault = self.hub.faults.take(self.asked)
        if isinstance(fault, Refuse):
            return self.refuse(fault)
        # Clients follow a redirect on the Hub's own host as the Hub's; large files are on another one.
        elsewhere = self.hub.url.replace("127.0.0.1", "localhost")
        digest = sha256(content).hexdigest()
        output |= {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{digest}"', "Content-Length": "0"}
        if self.hub.xet:
            token = f"{self.hub.url}/api/datasets/{REPOSITORY}/xet-read-token/{commit}"
            output |= {"X-Xet-Hash": digest, "Link": f'<{token}>; rel="xet-auth"'}
        self.head(302, output | {"Location": f"{elsewhere}/large/{digest}/{quote(path)}"})

    def xet_token(self, revision: str) -> None:
        if not self.hub.xet:
            raise Missing("EntryNotFound")
        self.hub.at(revision)
        output = {"X-Xet-Cas-Url": self.hub.xet, "X-Xet-Access-Token": "token", "X-Xet-Token-Expiration": str(2**40)}
        self.head(200, output | {"Content-Length": "0"})

    def large(self, digest: str, path: str) -> None:
        self._file(self.hub.large(digest, path), {"ETag": f'"{digest}"'})

    def plain(self, revision: str, path: str) -> None:
        _, files = self.hub.at(revision)
        if path not in files:
            raise Missing("")
        self._file(files[path], {"ETag": f'"{sha256(files[path]).hexdigest()}"'})

    def _file(self, content: bytes, headers: dict[str, str]) -> None:
        fault = self.hub.faults.take(self.asked)
        if isinstance(fault, Refuse):
            return self.refuse(fault)
        send(self, content, headers | {"Accept-Ranges": "bytes"}, fault)


_API = rf"/api/(?:datasets|models)/{REPOSITORY}"
_ROUTES: list[tuple[str, Callable[..., None]]] = [
    (_API, _Handler.information),
    (rf"{_API}/revision/(?P<revision>.+)", _Handler.information),
    (rf"{_API}/refs", _Handler.references),
    (rf"{_API}/tree/(?P<revision>[^/]+)/?(?P<folder>.*)", _Handler.tree),
    (rf"{_API}/paths-info/(?P<revision>[^/]+)", _Handler.paths),
    (rf"{_API}/xet-read-token/(?P<revision>[^/]+)", _Handler.xet_token),
    (rf"(?:/datasets)?/{REPOSITORY}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", _Handler.resolved),
    (r"/large/(?P<digest>[0-9a-f]{64})/(?P<path>.+)", _Handler.large),
    (r"/plain/(?P<revision>[^/]+)/(?P<path>.+)", _Handler.plain),
]


@contextmanager
def serving() -> Iterator[Hub]:
    """A server with an empty data set, `REPOSITORY`: `with serving() as hub`."""
    hub = Hub()
    with listening(_Handler, hub=hub) as hub.url:
        try:
            yield hub
        finally:
            hub.closing.set()
