"""Client of a board's server, which checks responses against the server's ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, FarshiftError, Unavailable, UnknownName, get_first_line
from ...core.files import is_offline
from ...core.listings import render_table, to_data_frame
from ...core.retry import TransientError, call_with_retries, is_retryable, parse_retry_after
from ...loaders.remote.http import parse_json_object
from ..ledger import Record
from ..operations.locations import read_history
from ..storage.readers import UrlReader

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 1 << 28
"""Maximum number of bytes of a response."""
PATIENCE = 60.0
_PAGE = 500


@dataclass(frozen=True)
class RemoteStandings:
    """Tables as computed by a server."""

    answer: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """Return plain JSON, as printed by `farshift board standings --json`."""
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
        """Return a data frame with a row for each entry in its table. Raises `MissingExtra` without pandas."""
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
    """A server at an address, whose responses are checked against its ledger. Raises `FarshiftError` if the ledger does
    not extend the one that this user saw before, or a response refers to a record that is not in it."""

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
        """Return a response after checking that its record is in the server's ledger and the ledger extends the known
        one."""
        head = answer.get("head")
        if not isinstance(head, dict) or not isinstance(head.get("seq"), int) or not isinstance(head.get("hash"), str):
            raise BadData(f"{self.url}: a response does not name the ledger record that it refers to")
        seq = head["seq"]
        if seq >= len(self._records):
            with TemporaryDirectory(prefix="farshift-board-") as folder:
                self._records = read_history(UrlReader(self.url, Path(folder)))
        if not 0 <= seq < len(self._records) or self._records[seq].hash != head["hash"]:
            raise FarshiftError(f"{self.url}: a response refers to record {seq}, which is not in the server's ledger")
        return answer

    def _json(self, path: str, parameters: dict[str, str] | None = None) -> dict[str, Any]:
        try:
            return parse_json_object(self._content(path, parameters))
        except ValueError as error:
            raise BadData(f"{self.url}/{path} is not a valid response of a board's server: {error}") from error

    def _content(self, path: str, parameters: dict[str, str] | None = None) -> bytes:
        return fetch_url(f"{self.url}/{path}", parameters)


class NotFound(FarshiftError):
    """An address was not found (404)."""


def find_server(url: str) -> Server | None:
    """Return the server at an address; None if there is no server, only a static export."""
    url = url.rstrip("/")
    try:
        answer = parse_json_object(fetch_url(f"{url}/api/v1/"))
    except (NotFound, ValueError):
        return None
    key = answer.get("key")
    if not isinstance(key, str) or len(key) != 64 or answer.get("read_only"):
        return None  # a copy is read like an export
    return Server(url)


def fetch_url(target: str, parameters: dict[str, str] | None = None) -> bytes:
    """Return the content at an address. Raises `NotFound` for 404, `Unavailable` if the server does not respond."""
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

    return call_with_retries(ask, f"{target} could not be fetched")


def _read_body(answer: Any, target: str) -> bytes:
    if is_retryable(answer.status_code):
        raise TransientError(
            f"the server returned status {answer.status_code}", parse_retry_after(answer.headers.get("Retry-After"))
        )
    got = bytearray()
    for piece in answer.iter_bytes():
        got += piece
        if len(got) > MOST_BYTES:
            raise BadData(f"{target} returned more than {MOST_BYTES} bytes")
    if answer.status_code == 404:
        raise NotFound(f"{target}: {_parse_error(bytes(got))}")
    if answer.status_code != 200:
        raise FarshiftError(f"{target} returned status {answer.status_code}: {_parse_error(bytes(got))}")
    return bytes(got)


def _parse_error(content: bytes) -> str:
    try:
        return str(parse_json_object(content).get("error", ""))[:200]
    except ValueError:
        return "not found"
