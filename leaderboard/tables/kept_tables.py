"""Tables as they were worked out, kept over a restart of who shows them: `derived/tables/<board>/<identity>-<key>.npz`.

A table with all that it shows is a function of its entries, their scores and kept rows, the attempts and the
baseline; and of the code that works it out. The key is a digest of all of these, so what is found under it is what
working it out anew would give. A file ends with its digest; one that is not what was written, or that cannot be read,
is none. The files may be deleted at any time. Of each table the newest is kept.

Only tables are kept all of whose entries have rows here: whether the others' can be had may change without a record.
"""

from __future__ import annotations

import io
import json
import logging
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.statistics.detectable import Detectable
from ...benchmarks.statistics.normalised import Summary
from ...benchmarks.statistics.spread import Spread
from ...core.canonical import canonical_json
from ...core.errors import FarshiftError, first_line
from ...core.files import with_digest, without_digest, write_atomically
from ...core.version import version
from ..entries import Standing
from .row_scores import KEPT as ROWS_KEPT
from .standings import Table
from .suite_table import Summarised
from .table_statistics import Pairs
from .table_view import Row, TableView

KEPT = 1
"""The version of what is kept: raised by any change of it."""

CODE = (".", "core", "benchmarks", "benchmarks/scoring", "benchmarks/statistics", "leaderboard", "leaderboard/tables")
"""The folders of the package whose modules have a part in a table."""

WORKED_OUT = tuple(one.name for one in fields(Row) if one.name != "standing")
"""What of a row is kept: its entry is in the ledger."""

log = logging.getLogger("farshift.server")


class KeptTables:
    """The tables of the board with a public key that are kept below a folder, which boards may share."""

    def __init__(self, derived: Path, key: str) -> None:
        self.folder = derived / "tables" / sha256(key.encode()).hexdigest()[:16]
        self._due: dict[Path, tuple[TableView, dict[str, Summarised]]] = {}

    def place(
        self,
        table: Table,
        attempts: Mapping[str, int],
        baseline: str,
        arrived: Mapping[str, int],
    ) -> Path:
        """Where a table is kept. attempts: by team; baseline: the model that the others are compared with; arrived:
        when each entry came, by its place in the ledger."""
        inputs = {
            "kept": [KEPT, ROWS_KEPT],
            "code": _code(),
            "table": {name: value for name, value in vars(table).items() if name != "rows"},
            "rows": [_named(one) for one in table.rows],
            "came": sorted((one.entry for one in table.rows), key=lambda entry: arrived[entry]),
            "attempts": dict(attempts),
            "baseline": baseline,
        }
        key = sha256(canonical_json(inputs)).hexdigest()
        return self.folder / f"{table.identity[:16]}-{key[:32]}.npz"

    def read(self, place: Path, table: Table) -> tuple[TableView, dict[str, Summarised]] | None:
        """The table that is kept there, and of each of its entries what an aggregate needs; None where there is none
        that is whole."""
        try:
            return unpacked(place.read_bytes(), table)
        except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile):
            return None

    def due(self, place: Path, view: TableView, summaries: dict[str, Summarised]) -> None:
        """Note a table that was worked out now: `write` keeps it."""
        if view.table.current and len(summaries) == len(view.rows):
            self._due[place] = view, summaries

    def write(self) -> None:
        """Keep what is due, in the place of what was kept of the same tables. What cannot be written is left: it is
        worked out again."""
        due, self._due = self._due, {}
        for place, (view, summaries) in due.items():
            try:
                write_atomically(place, packed(view, summaries))
                for other in place.parent.glob(f"{place.name.partition('-')[0]}-*.npz"):
                    if other != place:
                        other.unlink(missing_ok=True)
            except (FarshiftError, OSError, TypeError, ValueError) as error:
                log.warning("the table of %s is not kept: %s", view.table.heading, first_line(error))


@cache
def _code() -> str:
    """A digest of the code that works tables out, and of the version of NumPy under it."""
    root = Path(__file__).parents[2]
    found = sha256(f"{version()} {np.__version__}".encode())
    for folder in CODE:
        for file in sorted((root / folder).glob("*.py")):
            found.update(f"\n{folder}/{file.name}\n".encode() + file.read_bytes())
    return found.hexdigest()


def _named(one: Standing) -> dict[str, Any]:
    """All that tells an entry from others: what the ledger says of it, and its score by its digest."""
    said = {name: value for name, value in vars(one).items() if name not in ("score", "scores", "left")}
    return said | {"score": [one.scores[-1].path, one.scores[-1].digest]}


def packed(view: TableView, summaries: Mapping[str, Summarised]) -> bytes:
    """A table, and of each of its entries what an aggregate needs, as an .npz file with a digest behind it.
    `ValueError` where reading it would not give the same again."""
    arrays: dict[str, NDArray[Any]] = {}
    said: dict[str, Any] = {
        "rows": [[getattr(row, name) for name in WORKED_OUT] for row in view.rows],
        "ranked": view.ranked,
        "baseline": view.baseline,
        "detectable": None if view.detectable is None else vars(view.detectable),
        "notes": view.notes,
        "summaries": [
            [entry, one.ood.per_seed, one.ood.rows.variance, one.ood.rows.df] for entry, one in summaries.items()
        ],
        "order": None,
    }
    if view.pairs is not None:
        said["order"], said["bounds"] = view.pairs.order, view.pairs.bounds
        arrays["values"], arrays["differs"] = view.pairs.values, np.packbits(view.pairs.differs)
        reach = view.pairs.reach
        # Either way an interval is as wide: each pair once, as long as that is so to the last bit.
        arrays["reach"] = reach[np.triu_indices(len(reach))] if np.array_equal(reach, reach.T) else reach
    arrays["said"] = np.frombuffer(json.dumps(said).encode(), np.uint8)
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    found = with_digest(content.getvalue())
    if not _same((view, dict(summaries)), unpacked(found, view.table)):
        raise ValueError("it holds what JSON does not")
    return found


def unpacked(content: bytes, table: Table) -> tuple[TableView, dict[str, Summarised]]:
    """What `packed` was given, of this table. `ValueError`, `KeyError`, `TypeError`, `OSError` or
    `BadZipFile` where it is not that any more."""
    with np.load(io.BytesIO(without_digest(content)), allow_pickle=False) as arrays:
        said = json.loads(arrays["said"].tobytes())
        pairs = None
        if said["order"] is not None:
            count, reach = len(said["order"]), arrays["reach"]
            if reach.ndim == 1:
                upper, reach = reach, np.empty((count, count))
                reach[np.triu_indices(count)] = reach.T[np.triu_indices(count)] = upper
            differs = np.unpackbits(arrays["differs"], count=count * count).astype(bool).reshape(count, count)
            low, high = said["bounds"]
            pairs = Pairs(tuple(said["order"]), arrays["values"], reach, differs, (low, high))
    rows = tuple(_row(standing, given) for standing, given in zip(table.rows, said["rows"], strict=True))
    detectable = None if said["detectable"] is None else Detectable(**said["detectable"])
    view = TableView(table, rows, said["ranked"], said["baseline"], detectable, tuple(said["notes"]), pairs)
    summaries = {
        entry: Summarised(Summary(tuple(per_seed), Spread(variance, df)))
        for entry, per_seed, variance, df in said["summaries"]
    }
    return view, summaries


def _row(standing: Standing, given: Sequence[Any]) -> Row:
    named = dict(zip(WORKED_OUT, given, strict=True))
    named["rank"] = None if named["rank"] is None else tuple(named["rank"])
    named["declared"] = tuple(named["declared"])
    return Row(**named, standing=standing)


def _same(made: tuple[TableView, dict[str, Summarised]], read: tuple[TableView, dict[str, Summarised]]) -> bool:
    """Whether two tables are equal to the last bit, their pairs too."""
    if made != read or list(made[1]) != list(read[1]):
        return False
    one, other = made[0].pairs, read[0].pairs
    if one is None or other is None:
        return one is other
    same = all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in ("values", "reach", "differs")
    )
    return same and (one.order, one.bounds) == (other.order, other.bounds)
