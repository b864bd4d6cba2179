"""A published draw: `draw.toml` and `inputs.parquet`, which has only row ids and inputs, and the benchmark whose test
it is.

Every byte is a function of the announced terms, the commitment and the inputs: the functions that write it do not
receive labels, parts, groups or severities. Row ids are hashes of the inputs, and rows are sorted by them, ID and OOD
together; the file has no statistics and no metadata except types.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from ...benchmarks.benchmark import Benchmark, find_benchmark, make_canary
from ...benchmarks.definition import View
from ...core.canonical import compute_identity
from ...core.documents import read_toml
from ...core.errors import BadData, FarshiftError, get_first_line
from ...core.files import write_atomically
from ...loaders.part import Part
from ...splits.rows import compute_row_digests, compute_set_digest
from ...splits.schema import Schema
from .drawing import SEALED, VIEWS, SealedDraw, make_sealed_part
from .window import Terms, find_window, get_window_path

if TYPE_CHECKING:
    import pyarrow as pa

    from ..board_view import BoardView


def export_draw(board: BoardView, window: str, out: Path | str) -> Path:
    """Copy a draw from a board, or a copy of one, to the folder `out`. Raises `FarshiftError` if `out` contains
    other files, or if the draw does not match the ledger."""
    sealed_window = find_window(board.committed_records(), window)
    out = Path(out)
    if out.exists() and (not out.is_dir() or {path.name for path in out.iterdir()} - {CARD, INPUTS}):
        raise FarshiftError(f"{out} contains other files: choose another folder")
    for name, file in ((INPUTS, "inputs"), (CARD, "card")):
        path = get_window_path(sealed_window.name, file)
        write_atomically(out / name, board.read_file(path, sealed_window.opened["files"][path]))
    return out


DRAW_FORMAT = 1
CARD, INPUTS = "draw.toml", "inputs.parquet"
MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class PublishedDraw:
    """A published draw. `inputs`: row_id and the task's input fields, ascending row id; `digest`: of the inputs."""

    terms: Terms
    commitment: str
    digest: str
    inputs: pa.Table


def select_inputs(rows: Part, benchmark: Benchmark) -> pa.Table:
    """Row ids and inputs of a part, ascending row id."""
    import pyarrow as pa

    table = rows.arrow(["row_id", *benchmark.task.inputs])
    types = {name: benchmark.split.source.schema[name].arrow() for name in benchmark.task.inputs}
    schema = pa.schema([("row_id", pa.uint64()), *types.items()])
    return table.cast(schema).sort_by("row_id").combine_chunks()


def compute_inputs_digest(inputs: pa.Table, benchmark: Benchmark) -> str:
    """sha256 over the row ids (8 bytes each, little-endian) and the digest of the set of rows of inputs."""
    schema = benchmark.split.source.schema
    fields = tuple(schema[name] for name in benchmark.task.inputs)
    rows = compute_set_digest(compute_row_digests(inputs, Schema(fields)))
    ids = np.ascontiguousarray(inputs["row_id"].to_numpy().astype("<u8"))
    return sha256(ids.tobytes() + bytes.fromhex(rows)).hexdigest()


def encode_inputs(inputs: pa.Table) -> bytes:
    """The bytes of `inputs.parquet`: one row group, no statistics, no metadata except the columns' types."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(
        inputs.replace_schema_metadata(None),
        buffer,
        compression="zstd",
        write_statistics=False,
        row_group_size=max(1, inputs.num_rows),
    )
    return buffer.getvalue()


def make_draw_files(terms: Terms, commitment: str, inputs: pa.Table, benchmark: Benchmark) -> dict[str, bytes]:
    """The files for participants: the contents of `draw.toml` and `inputs.parquet`, by file name."""
    content = encode_inputs(inputs)
    card = {
        "format": DRAW_FORMAT,
        "window": terms.record() | {"commitment": commitment},
        "draw": {
            "rows": inputs.num_rows,
            "inputs": compute_inputs_digest(inputs, benchmark),
            "file": sha256(content).hexdigest(),
        },
        "canary": make_canary(benchmark),
    }
    return {CARD: tomli_w.dumps(card).encode(), INPUTS: content}


def read_draw(folder: Path | str) -> PublishedDraw:
    """Read a published draw and check its digests. Raises `BadData` for a mismatch, and `FarshiftError` if the
    installed benchmark is another version than the window's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(folder)
    if not (folder / CARD).is_file():
        raise FarshiftError(f"{folder} is not a draw: it has no {CARD} (farshift board sealed draw writes it)")
    card = read_toml(folder / CARD)
    path = folder / INPUTS
    try:
        terms, commitment = Terms.of(card["window"]), str(card["window"]["commitment"])
        digest, file = str(card["draw"]["inputs"]), str(card["draw"]["file"])
    except (KeyError, TypeError) as error:
        raise BadData(f"{folder / CARD} has missing or invalid keys: get the draw from the board again") from error
    if card.get("format") != DRAW_FORMAT:
        raise BadData(f"{folder / CARD}: format {card.get('format')!r} is not {DRAW_FORMAT}")
    content = path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_BYTES else b""
    if sha256(content).hexdigest() != file:
        raise BadData(f"{path} is missing or was changed: get the draw from the board again")
    benchmark = find_window_benchmark(terms)
    columns = ["row_id", *benchmark.task.inputs]
    try:
        inputs = pq.read_table(io.BytesIO(content))
        inputs.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise BadData(f"{path}: cannot be read: {get_first_line(error, 200)}") from error
    if inputs.column_names != columns or compute_inputs_digest(inputs, benchmark) != digest:
        raise BadData(f"{path} does not match the digest in {CARD}: get the draw from the board again")
    return PublishedDraw(terms, commitment, digest, inputs.combine_chunks())


def find_window_benchmark(terms: Terms) -> Benchmark:
    """The benchmark of a window. Raises `FarshiftError` if another version is installed here."""
    benchmark = find_benchmark(terms.benchmark)
    if benchmark.manifest.identity != terms.manifest:
        raise FarshiftError(
            f"window {terms.window} uses {terms.split} with the identity {terms.manifest[:12]}.., but installed is "
            f"{benchmark.manifest.full_name} with {benchmark.manifest.identity[:12]}..: use the window's version"
        )
    return benchmark


@dataclass(frozen=True)
class SealedBenchmark(Benchmark):
    """The benchmark of a window. `drawn` is None while the labels are secret: then predictions can be made and
    validated, but not scored."""

    draw: PublishedDraw
    inputs: Part
    drawn: SealedDraw | None = None

    def identity(self, *args: Any, **options: Any) -> str:
        """The public benchmark's identity, combined with the window and the draw."""
        inner = super().identity(*args, **options)
        seeded = {"commitment": self.draw.commitment, "inputs": self.draw.digest}
        return compute_identity({"entry": inner, "window": self.draw.terms.record(), "draw": seeded})

    def has_part(self, name: str) -> bool:
        return name == SEALED or super().has_part(name)

    def part(self, name: str) -> Part:
        if name != SEALED:
            return super().part(name)
        return self.inputs if self.drawn is None else self.drawn.rows

    def view(self, view: View | str) -> tuple[Part, NDArray[Any]]:
        name = view if isinstance(view, str) else ""
        if (view.part if isinstance(view, View) else self.definition.views[view].part) == SEALED:
            if self.drawn is None:
                raise FarshiftError(f"window {self.draw.terms.window}: its labels are not revealed yet")
            rows = self.drawn.rows
            chosen = rows.select(self.drawn.sides[name]) if name else rows
            return chosen, chosen.true_labels()
        part, truth = super().view(view)
        if self.drawn is None or not name:
            return part, truth
        is_counterpart = np.isin(part.row_ids, self.drawn.counterpart[name.removeprefix("public_")])
        return part.select(is_counterpart), truth[is_counterpart]


def name_public_view(name: str) -> str:
    """The name of the view of published rows that corresponds to a view of sealed rows."""
    return f"public_{name}"


def make_sealed_benchmark(
    benchmark: Benchmark, draw: PublishedDraw, drawn: SealedDraw | None = None
) -> SealedBenchmark:
    """The benchmark of a window, from the published draw; with the labels in `drawn` it can be scored."""
    definition = benchmark.definition
    views: Mapping[str, View] = {name: View(part=SEALED) for name in VIEWS} | {
        name_public_view(name): definition.views[name] for name in VIEWS
    }
    sealed_definition = definition.model_copy(update={"views": dict(views), "composed": None})
    inputs = make_sealed_part(benchmark, draw.inputs, draw.digest)
    return SealedBenchmark(sealed_definition, benchmark.path, draw, inputs, drawn)
