"""Files that are damaged, hostile or none: `splits build` ends in a split or in one line, and never in a traceback."""

from __future__ import annotations

import io
import json
import subprocess
import tempfile
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError
from farshift.loaders.acquire.own_data import Data
from own_source import pin_source
from support import for_each, one_line_error, run_in_process

ROWS = 24
COLUMNS = {
    "x": [f"t{row} a" for row in range(ROWS)],
    "y": [("no", "yes")[row // 4 % 2] for row in range(ROWS)],
    "site": ["ABCD"[row % 4] for row in range(ROWS)],
}
DRAFT = """
name = "t/site"
version = 1
kind = "domain"
title = "A case"
label = "y"
rule = "domain/hold_out"
parameters = {{ field = "site", ood = ["D"] }}
data = {{ {data}, labels = ["y"], meta = ["site"] }}
"""


def built(data: str, content: bytes, file: str) -> subprocess.CompletedProcess[str]:
    """`splits build` of a draft over one file."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        home = Path(folder)
        patch.setenv("FARSHIFT_CACHE", str(home / "cache"))
        (home / file).write_bytes(content)
        (home / "t.toml").write_text(DRAFT.format(data=data))
        return run_in_process("splits", "build", home / "t.toml", "--out", home / "splits/manifests")


def refusal(data: str, content: bytes, file: str) -> str:
    return one_line_error(built(data, content, file))


def table(file: str) -> str:
    return f'files = ["{file}"], inputs = ["x"]'


def jsonl(rows: dict[str, list] = COLUMNS) -> bytes:
    return b"".join(
        json.dumps(dict(zip(rows, row, strict=True))).encode() + b"\n" for row in zip(*rows.values(), strict=True)
    )


def parquet(columns: dict[str, object]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


HALF = jsonl().replace(b"t7 a", b"\\ud800")


def test_half_a_character_in_json_is_named_with_its_line():
    line = refusal(table("a.jsonl"), HALF, "a.jsonl")
    assert r"a.jsonl, line 8: not JSON: \ud800 is not a character (a lone surrogate)" in line
    full = b"[" + HALF.replace(b"\n", b",")[:-1] + b"]"
    assert r"a.json: not JSON: \ud800 is not a character" in refusal(table("a.json"), full, "a.json")
    assert built(table("a.jsonl"), HALF.replace(b"\\ud800", b"\\ud83d\\ude00"), "a.jsonl").returncode == 0, (
        "a pair is one"
    )


def test_what_is_nested_too_deeply_is_named_with_its_line():
    deep = jsonl() + b'{"x":' * 100_000 + b"\n"
    assert "a.jsonl, line 25: not JSON: it is nested over 100 deep" in refusal(table("a.jsonl"), deep, "a.jsonl")
    assert "a.json: not JSON: it is nested over 100 deep" in refusal(table("a.json"), b"[" * 100_000, "a.json")
    draft = 'files = ["a.csv"], inputs = ["x"], options = ' + "[" * 100_000
    assert "t.toml: not valid TOML: it is nested over 100 deep" in refusal(draft, b"", "a.csv")


KINDS = {
    "bool": pa.array([row % 2 == 0 for row in range(ROWS)]),
    "decimal": pa.array([Decimal(row) for row in range(ROWS)]),
    "duration": pa.array([timedelta(row) for row in range(ROWS)]),
    "time": pa.array([time(row) for row in range(ROWS)]),
    "date": pa.array([date(2000, 1, 1 + row) for row in range(ROWS)]),
    "far date": pa.array([2**30] * ROWS, pa.date32()),
    "far time": pa.array([2**62] * ROWS, pa.timestamp("ms")),
    "null": pa.nulls(ROWS),
    "uint64": pa.array([2**64 - 1 - row for row in range(ROWS)], pa.uint64()),
    "float16": pa.array([float(row) for row in range(ROWS)]).cast(pa.float16()),
    "map": pa.array([[("a", row)] for row in range(ROWS)], pa.map_(pa.string(), pa.int64())),
    "struct": pa.array([{"a": row} for row in range(ROWS)]),
    "codes": pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
    "ragged": pa.array([[[row, 2], [3]] for row in range(ROWS)]),
    "texts": pa.array([["a"]] * ROWS),
    "empty lists": pa.array([[]] * ROWS, pa.list_(pa.int64())),
    "bytes": pa.array([b"\xff"] * ROWS),
    "fixed bytes": pa.array([b"ab"] * ROWS, pa.binary(2)),
}


@pytest.mark.usefixtures("cache")
@for_each(KINDS)
def test_a_column_of_any_type_is_read_or_refused_in_any_role(kind):
    for field in ("x", "y"):
        content = parquet({**COLUMNS, field: KINDS[kind]})
        for options in ({}, {"missing": ["?"]}):
            with tempfile.TemporaryDirectory() as folder, suppress(FarshiftError):
                Path(folder, "a.parquet").write_bytes(content)
                data = Data(files=["a.parquet"], inputs=["x"], labels=["y"], meta=["site"], options=options)
                assert pin_source(data, "mine", Path(folder), Path(folder)).definition.rows == ROWS
