"""A board's server as a client sees it: answers that are held to the ledger that it shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, FarshiftError, Unavailable, UnknownName, get_first_line
from ...core.files import is_offline
from ...core.listings.frame import to_data_frame
from ...core.listings.html import render_table
from ...core.retry import TransientError, call_with_retries, is_retryable, parse_retry_after
from ...loaders.remote.received import parse_json_object
from ..ledger import Record
from ..operations.locations import read_history
from ..storage.readers import UrlReader

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 1 << 28
"""Bytes of an answer that are read."""
PATIENCE = 60.0
_PAGE = 500


@dataclass(frozen=True)
class RemoteStandings:
    """Tables as a server says them."""

    answer: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """Plain JSON, as `farshift board standings --json` prints it."""
        return self.answer

    def _repr_html_(self) -> str:
        rows = [
            {
                "table": standings_table["benchmark"],
                "model": row["model"],
                "team": row["team"],
                "rank": row["rank"] or "",
            }
            | {name.upper(): f"{row[name]['value']:.4g}" for name in ("id", "ood", "gap")}
            for standings_table in self.answer["tables"]
            for row in standings_table["rows"]
        ]
        return render_table(rows, str(self.answer["board"]))

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for each entry in its table. `MissingExtra` without pandas."""
        placed = ("benchmark", "budget", "steps", "selection", "metric", "identity")
        return to_data_frame(
            [
                {name: standings_table[name] for name in placed} | row
                for standings_table in self.answer["tables"]
                for row in standings_table["rows"]
            ]
        )


@dataclass
class Server:
    """A server at an address. Each answer is held to its ledger. `FarshiftError` where the ledger does not extend what
    this user saw of it, or an answer counts a record that is not in it."""

    url: str
    _records: list[Record] = field(default_factory=list, repr=False)

    def start(self) -> dict[str, Any]:
        return self._check_in_ledger(self._json("api/v1/"))

    def standings(self, benchmark: str = "") -> RemoteStandings:
        answer = self._check_in_ledger(self._json("api/v1/standings"))
        if benchmark:
            answer["tables"] = [
                standings_table for standings_table in answer["tables"] if standings_table["benchmark"] == benchmark
            ]
        return RemoteStandings(answer)

    def entries(self, filters: dict[str, str]) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        cursor = ""
        while True:
            more = filters | {"limit": str(_PAGE)} | ({"cursor": cursor} if cursor else {})
            page = self._check_in_ledger(self._json("api/v1/entries", more))
            entries += page["entries"]
            if not page["next"] or page["next"] == cursor:
                return entries
            cursor = str(page["next"])

    def entry(self, name: str) -> dict[str, Any]:
        if not name.isalnum():
            raise UnknownName("entry", name, ())
        return self._check_in_ledger(self._json(f"api/v1/entries/{name}"))

    def windows(self) -> list[dict[str, Any]]:
        listed = self._check_in_ledger(self._json("api/v1/windows"))["windows"]
        return [self._check_in_ledger(self._json(f"api/v1/windows/{window['window']}")) for window in listed]

    def _check_in_ledger(self, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer whose record is in the server's ledger, which extends what was seen."""
        head = answer.get("head")
        if not isinstance(head, dict) or not isinstance(head.get("seq"), int) or not isinstance(head.get("hash"), str):
            raise BadData(f"{self.url}: an answer does not say which record it counts")
        seq = head["seq"]
        if seq >= len(self._records):
            with TemporaryDirectory(prefix="farshift-board-") as folder:
                self._records = read_history(UrlReader(self.url, Path(folder)))
        if not 0 <= seq < len(self._records) or self._records[seq].hash != head["hash"]:
            raise FarshiftError(f"{self.url}: record {seq}, which an answer counts, is not in its ledger")
        return answer

    def _json(self, path: str, parameters: dict[str, str] | None = None) -> dict[str, Any]:
        try:
            return parse_json_object(self._content(path, parameters))
        except ValueError as error:
            raise BadData(f"{self.url}/{path} is not as a board's server answers: {error}") from error

    def _content(self, path: str, parameters: dict[str, str] | None = None) -> bytes:
        return fetch_url(f"{self.url}/{path}", parameters)


class NotFound(FarshiftError):
    """There is nothing at an address."""


def find_server(url: str) -> Server | None:
    """The server at an address; None where it has none of its answers, as a static export."""
    url = url.rstrip("/")
    try:
        answer = parse_json_object(fetch_url(f"{url}/api/v1/"))
    except (NotFound, ValueError):
        return None
    key = answer.get("key")
    if not isinstance(key, str) or len(key) != 64 or answer.get("read_only"):
        return None  # a copy is read as an export is
    return Server(url)


def fetch_url(target: str, parameters: dict[str, str] | None = None) -> bytes:
    """What is at an address. `NotFound` for 404, `Unavailable` where nothing answers."""
    import httpx2

    if is_offline():
        raise Unavailable(f"{target} was not contacted: FARSHIFT_OFFLINE is set")

    def ask() -> bytes:
        try:
            with (
                httpx2.Client(timeout=PATIENCE) as client,
                client.stream("GET", target, params=parameters, headers={"User-Agent": "farshift"}) as answer,
            ):
                return _read_body(answer, target)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            raise Unavailable(f"{target} cannot be reached: {get_first_line(error)}") from error
        except httpx2.TransportError as error:
            raise TransientError(str(error) or type(error).__name__) from error

    return call_with_retries(ask, f"{target} could not be had")


def _read_body(answer: Any, target: str) -> bytes:
    if is_retryable(answer.status_code):
        raise TransientError(
            f"the server answered {answer.status_code}", parse_retry_after(answer.headers.get("Retry-After"))
        )
    got = bytearray()
    for piece in answer.iter_bytes():
        got += piece
        if len(got) > MOST_BYTES:
            raise BadData(f"{target} answered with over {MOST_BYTES} bytes")
    if answer.status_code == 404:
        raise NotFound(f"{target}: {_parse_error(bytes(got))}")
    if answer.status_code != 200:
        raise FarshiftError(f"{target} answered {answer.status_code}: {_parse_error(bytes(got))}")
    return bytes(got)


def _parse_error(content: bytes) -> str:
    try:
        return str(parse_json_object(content).get("error", ""))[:200]
    except ValueError:
        return "there is nothing here"
