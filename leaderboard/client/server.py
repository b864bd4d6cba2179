"""Client of a board's server, which checks responses against the server's ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...core.documents import parse_json
from ...core.errors import BadData, FarshiftError, UnknownName
from ...core.listings import render_table, to_data_frame
from ..ledger import Record
from ..operations.locations import read_history
from ..storage.http import fetch
from ..storage.readers import UrlReader

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 1 << 28
"""Maximum number of bytes of a response."""
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
        answer = fetch(f"{self.url}/{path}", MOST_BYTES, parameters)
        if answer.status != 200:
            raise FarshiftError(f"{answer.url} answered {answer.status}: {answer.error}")
        return answer.json()


def find_server(url: str) -> Server | None:
    """Return the server at an address; None if there is no server, only a static export."""
    url = url.rstrip("/")
    try:
        answer = parse_json(fetch(f"{url}/api/v1/", MOST_BYTES).content, dict)
    except ValueError:
        return None
    key = answer.get("key")
    if not isinstance(key, str) or len(key) != 64 or answer.get("read_only"):
        return None  # a copy is read like an export
    return Server(url)
