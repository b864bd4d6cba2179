"""Every type of a column through every path: built, loaded, batched, streamed, exported, learnt from; or refused in one
line that says what to do, which then works."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import farshift as fs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from encoded_files import picture, sound
from farshift import FarshiftError
from farshift.baselines.running.sweep import run_baseline
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.freezing.freeze import freeze
from farshift.splits.catalogue import find_manifest
from own_benchmark import write_benchmark
from own_source import pin_source
from torch.utils.data import DataLoader

ROWS = 240
NUMBERS = np.arange(ROWS)
MOMENT = dt.datetime(2024, 2, 29, 23, 59, 59, 1)
EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))
DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=row) for row in range(ROWS)]
TIMES = [MOMENT + dt.timedelta(hours=row) for row in range(ROWS)]
TOWNS = ["near", "near", "far", "far"] * (ROWS // 4)
TEXTS = [f"tëxt {row % 50}" for row in range(ROWS)]
FILES = [bytes([row % 256, 0, 255]) for row in range(ROWS)]
HALVES = (NUMBERS / 8).astype(np.float16)
VECTORS = [[row, row + 0.5, -row] for row in range(ROWS)]
PICTURES = [picture(row, "PNG", 8) for row in range(ROWS)]
SOUNDS = [sound(row) for row in range(ROWS)]


@dataclass(frozen=True)
class Carried:
    """A column that becomes a field: what type it gets, and what its values are."""

    type: str
    column: pa.Array
    values: list[Any]
    role: str = "input"


def whole(kind: pa.DataType) -> Carried:
    return Carried("int64", pa.array(NUMBERS % 100, kind), (NUMBERS % 100).tolist())


def encoded(contents: list[bytes]) -> pa.Array:
    return pa.array([{"bytes": content, "path": f"{row}"} for row, content in enumerate(contents)])


def carried() -> dict[str, Carried]:
    truth = [row % 3 == 0 for row in range(ROWS)]
    money = [Decimal(f"{row}.{row % 100:02}") for row in range(ROWS)]
    stamps = [np.datetime64(time, "us") for time in TIMES]
    integers = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    return {
        "bool": Carried("bool", pa.array(truth), truth),
        **{str(kind): whole(kind) for kind in integers},
        "float16": Carried("float64", pa.array(HALVES), HALVES.astype(float).tolist()),
        "float32": Carried("float64", pa.array(NUMBERS / 3, pa.float32()), (NUMBERS / 3).astype("f4").tolist()),
        "float64": Carried("float64", pa.array(NUMBERS / 3), (NUMBERS / 3).tolist()),
        "decimal": Carried("float64", pa.array(money, pa.decimal128(38, 2)), [float(str(item)) for item in money]),
        "decimal_whole": Carried("int64", pa.array(map(Decimal, range(ROWS)), pa.decimal128(38, 0)), NUMBERS.tolist()),
        "string": Carried("string", pa.array(TEXTS), TEXTS),
        "large_string": Carried("string", pa.array(TEXTS, pa.large_string()), TEXTS),
        "string_view": Carried("string", pa.array(TEXTS, pa.string_view()), TEXTS),
        "dictionary": Carried("string", pa.array(TEXTS).dictionary_encode(), TEXTS),
        "binary": Carried("bytes", pa.array(FILES), FILES),
        "large_binary": Carried("bytes", pa.array(FILES, pa.large_binary()), FILES),
        "binary_view": Carried("bytes", pa.array(FILES, pa.binary_view()), FILES),
        "fixed_binary": Carried("bytes", pa.array(FILES, pa.binary(3)), FILES),
        "list": Carried("float32[3]", pa.array(VECTORS), VECTORS),
        "fixed_list": Carried("float32[3]", pa.array(VECTORS, pa.list_(pa.float32(), 3)), VECTORS),
        "nested": Carried("int64[1,2]", pa.array([[[row, 7]] for row in range(ROWS)]), [[[n, 7]] for n in range(ROWS)]),
        "truths": Carried("uint8[2]", pa.array([[item, True] for item in truth]), [[int(item), 1] for item in truth]),
        "pixels": Carried(
            "uint8[2,3]", pa.array([[[n, 1, 2], [3, 4, 5]] for n in range(ROWS)], pa.list_(pa.list_(pa.uint8(), 3), 2)),
            [[[n, 1, 2], [3, 4, 5]] for n in range(ROWS)],
        ),
        "tensor": Carried(
            "float32[2]", pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(2 * ROWS, dtype="f4").reshape(-1, 2)),
            np.arange(2.0 * ROWS).reshape(-1, 2).tolist(),
        ),
        "image": Carried("image", encoded(PICTURES), PICTURES),
        "audio": Carried("audio", encoded(SOUNDS), SOUNDS),
        "date": Carried("timestamp", pa.array(DAYS), [np.datetime64(day, "us") for day in DAYS], "meta"),
        "naive": Carried("timestamp", pa.array(TIMES), stamps, "meta"),
        "zoned": Carried(
            "timestamp", pa.array([time.replace(tzinfo=dt.UTC) for time in TIMES], pa.timestamp("ns", "Asia/Kolkata")),
            stamps, "meta",
        ),
        "town": Carried("string", pa.array(TOWNS), TOWNS, "meta"),
    }  # fmt: skip


TYPES = carried()
INPUTS = [name for name, item in TYPES.items() if item.role == "input"]
COUNTED = [name for name in INPUTS if TYPES[name].type not in ("string", "bytes", "image", "audio")]
DRAFT = """
name = "{source}/near"
version = 1
kind = "domain"
title = "Every type"
label = "answer"
rule = "domain/hold_out"
parameters = {{ field = "{domain}", ood = [{ood}] }}
data = {{ files = ["{files}"], inputs = {inputs}, labels = ["answer"], meta = {meta}{more} }}
benchmark = {{}}
"""


def build(home: Path, source: str, inputs: list[str], meta: list[str], **said: str) -> None:
    defaults = {"domain": "town", "ood": '"far"', "files": "all.parquet", "more": ""}
    draft = home / f"{source}.toml"
    draft.write_text(DRAFT.format(source=source, inputs=inputs, meta=meta, **(defaults | said)))
    freeze(draft, home / "splits" / "manifests")
    write_benchmark(find_manifest(f"{source}/near"), {}, home)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("types")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_CACHE", str(folder / "cache"))
        patch.setenv("FARSHIFT_PATH", str(folder))
        columns = {name: item.column for name, item in TYPES.items()}
        wards = pa.array([2**64 - 1 - row % 3 for row in range(ROWS)], pa.uint64())
        more = {"key": NUMBERS, "answer": NUMBERS % 3 == 0, "ward": wards, "open": NUMBERS % 4 < 2}
        pq.write_table(pa.table(columns | more), folder / "all.parquet")
        build(folder, "all", ["key", *INPUTS], [name for name in TYPES if name not in INPUTS])
        build(folder, "numbers", COUNTED, ["town"])
        yield folder


@pytest.fixture(scope="module")
def part(home) -> fs.Part:
    return fs.load("all/near", part="train")


def expected(name: str, keys: Any) -> list[Any]:
    return [TYPES[name].values[key] for key in np.asarray(keys).tolist()]


@pytest.mark.parametrize("name", TYPES)
def test_a_column_is_read_as_what_it_is(part, name):
    assert part.schema[name].type == TYPES[name].type
    result = part.numpy([name, "key"])
    values = result[name]
    assert list(values) == expected(name, result["key"]) if values.ndim == 1 else True
    assert values.tolist() == expected(name, result["key"]) or values.dtype.kind == "M"
    assert values.shape == (len(part), *part.schema[name].shape)
    assert part[0][name] is not None
    assert part.arrow([name]).num_rows == len(part)


def as_torch(name: str, keys: Any) -> list[Any]:
    values = expected(name, keys)
    return [int(value.astype(np.int64)) for value in values] if TYPES[name].type == "timestamp" else values


def two_ranks(part: fs.Part, columns: list[str], **asked: Any) -> list[list[dict[str, Any]]]:
    """The batches of each rank, where the last batch is one row."""
    odd = part.select(np.arange(119))
    shares = [list(odd.torch(118, columns=[*columns, "row_id"], rank=rank, world=2, **asked)) for rank in range(2)]
    assert [[len(batch["row_id"]) for batch in share] for share in shares] == [[59, 0], [59, 1]]
    every = np.concatenate([batch["row_id"] for share in shares for batch in share])
    assert sorted(every.tolist()) == odd.row_ids.tolist()
    return shares


@pytest.mark.parametrize("name", TYPES)
def test_ranks_have_batches_of_one_kind_also_without_rows(part, name):
    shares = two_ranks(part, [name, "key"])
    every = [batch[name] for share in shares for batch in share]
    assert len({type(values) for values in every}) == 1
    if isinstance(every[0], torch.Tensor):
        assert {(values.dtype, values.shape[1:]) for values in every} == {(every[0].dtype, part.schema[name].shape)}
    for share in shares:
        for batch in share:
            values = batch[name]
            result = values.tolist() if isinstance(values, torch.Tensor) else values
            assert result == as_torch(name, batch["key"])


@pytest.mark.parametrize(
    ("form", "kind", "shape"),
    [
        (8, torch.uint8, (8, 8, 3)),
        ("resize 6, crop 6, normalise none", torch.float32, (3, 6, 6)),
        ("PIL", list, ()),
        ("bytes", list, ()),
    ],
)
def test_a_form_of_pictures_is_the_same_without_rows(part, form, kind, shape):
    shares = two_ranks(part, ["image"], images=form)
    every = [batch["image"] for share in shares for batch in share]
    kinds = {values.dtype if isinstance(values, torch.Tensor) else type(values) for values in every}
    assert kinds == {kind}
    if kind is not list:
        assert {tuple(values.shape[1:]) for values in every} == {shape}


def test_torch_draws_rows_of_a_part_with_every_type(part):
    batch = next(iter(DataLoader(part, batch_size=4)))
    assert batch["zoned"].tolist() == as_torch("zoned", batch["key"])
    assert batch["bool"].dtype == torch.bool


@pytest.fixture(scope="module", params=["webdataset", "parquet", "source"])
def streamed(request, part, home) -> dict[str, Any]:
    if request.param == "source":
        # The same columns under the names of their fields, as a data set of the Hub has them.
        table = pa.table({name: item.column for name, item in TYPES.items() if name not in ("image", "audio")})
        for name, contents in (("image", PICTURES), ("audio", SOUNDS)):
            table = table.append_column(name, pa.array(contents))
        more = {"key": pa.array(NUMBERS), "answer": pa.array(NUMBERS % 3 == 0)}
        for name, column in more.items():
            table = table.append_column(name, column)
        pq.write_table(table, home / "own.parquet")
        address = home / "own.parquet"
    elif request.param == "parquet":
        address = part.to_parquet(home / "export.parquet")
    else:
        address = part.to_webdataset(home / "shards")
    result = fs.stream("all/near", "train", str(address))
    batches = list(result.batches(64, seed=0))
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


@pytest.mark.parametrize("name", TYPES)
def test_an_export_and_the_files_themselves_stream_the_same_rows(streamed, part, name):
    local = np.concatenate([batch[name] for batch in part.batches(64, seed=0, columns=[name])])
    assert streamed[name].dtype == local.dtype
    assert streamed[name].tolist() == local.tolist()


def test_a_data_set_of_hugging_face_has_every_type(part):
    result = part.to_hf().with_format("arrow")[:]
    for name in TYPES:
        assert result[name].to_pylist() == [
            row[name] if not part.schema[name].shape else np.reshape(row[name], part.schema[name].shape).tolist()
            for row in part[:]
        ]


def test_an_estimator_and_a_baseline_learn_from_every_number(home, tmp_path):
    from sklearn.tree import DecisionTreeClassifier

    run = fs.evaluate(DecisionTreeClassifier(), on="numbers/near", budget="quick", seeds=1, out=tmp_path / "sklearn")
    assert fs.score(run).ood.value == 1.0  # one of its inputs is the answer
    run = run_baseline("extra-trees", "numbers/near", seeds=1, budget="quick", out=tmp_path / "trees")
    assert fs.score(run).ood.value > 0.9


@pytest.mark.parametrize(("domain", "ood"), [("ward", str(2**64 - 1)), ("open", "true")])
def test_whole_numbers_of_any_size_and_truth_values_are_domains(home, domain, ood):
    types = ', types = { ward = "uint64" }' if domain == "ward" else ""
    build(home, domain, ["key"], [domain], domain=domain, ood=f'"{ood}"', more=types)
    part = fs.load(f"{domain}/near", part="ood_test")
    assert set(part.numpy(["group"])["group"]) == {ood}
    assert set(part.numpy([domain])[domain].tolist()) == {int(ood) if domain == "ward" else True}
    shards = part.to_webdataset(home / f"{domain}-shards")
    streamed = list(fs.stream(f"{domain}/near", "ood_test", str(shards)).batches(1000))
    assert streamed[0][domain].tolist() == part.numpy([domain])[domain].tolist()


@dataclass(frozen=True)
class Refused:
    """Columns of files that are not carried by themselves: what is said, and what `types` then gives."""

    said: str
    columns: list[pa.Array]
    remedies: dict[str, list[Any]]


HUGE = 18329103420363166823
TICKS = [dt.timedelta(milliseconds=1500 * row) for row in range(10)]
CLOCK = [dt.time(1, 2, row) for row in range(10)]
MOST_DIGITS = [Decimal(f"{row}.1234567890123456789") for row in range(10)]
EXACT = 2**53 + 1
PLAIN = [pa.array(range(10)), pa.array([str(row) for row in range(10)])]

REFUSED = {
    "uint64": Refused(
        f"a.parquet: x is {HUGE} .uint64., which int64 cannot represent exactly",
        [pa.array([HUGE - row for row in range(10)], pa.uint64())],
        {
            "string": [str(HUGE - row) for row in range(10)],
            "float64": [float(HUGE - row) for row in range(10)],
            "uint64": [HUGE - row for row in range(10)],
        },
    ),
    "decimal": Refused(
        r"a.parquet: x is 0.1234567890123456789 .decimal128.25, 19.., which float64 cannot represent exactly",
        [pa.array(MOST_DIGITS, pa.decimal128(25, 19))],
        {"string": [str(item) for item in MOST_DIGITS], "float64": [float(item) for item in MOST_DIGITS]},
    ),
    "large decimal": Refused(
        "a.parquet: x is 1000000000000000000000 .*, which int64 cannot represent exactly",
        [pa.array([Decimal(10**21 + row) for row in range(10)], pa.decimal128(30, 0))],
        {"string": [str(10**21 + row) for row in range(10)], "float64": [float(10**21 + row) for row in range(10)]},
    ),
    "duration": Refused(
        r"a.parquet: column 'x' is duration.us., which no field type supports",
        [pa.array(TICKS)],
        {"string": [f"{Decimal(15 * row) / 10:f}".removesuffix(".0") for row in range(10)],
         "float64": [1.5 * row for row in range(10)]},
    ),
    "time": Refused(
        r"a.parquet: column 'x' is time64.us., which no field type supports",
        [pa.array(CLOCK)],
        {"string": [f"01:02:0{row}.000000" for row in range(10)], "float64": [3720.0 + row for row in range(10)]},
    ),
    "texts": Refused(
        "a.parquet: column 'x' is list<.*, which no field type supports",
        [pa.array([["a", str(row)] for row in range(10)])],
        {"string": [f'["a","{row}"]' for row in range(10)]},
    ),
    "structure": Refused(
        r"a.parquet: column 'x' is struct<.*, which no field type supports: .*, or a part of it by its name ..x.a..",
        [pa.array([{"a": row, "b": 1} for row in range(10)])],
        {"string": [f'{{"a":{row},"b":1}}' for row in range(10)]},
    ),
    "map": Refused(
        "a.parquet: column 'x' is map<.*, which no field type supports",
        [pa.array([[("a", row)] for row in range(10)], pa.map_(pa.string(), pa.int64()))],
        {"string": [f'[["a",{row}]]' for row in range(10)]},
    ),
    "ragged": Refused(
        "a.parquet: column 'x' has lists of",
        [pa.array([[row] * (1 + row % 2) for row in range(10)])],
        {"string": [f"[{row}]" if row % 2 == 0 else f"[{row},{row}]" for row in range(10)]},
    ),
    "text beside numbers": Refused(
        "b.parquet: column 'x' is string, but int64 in a.parquet",
        PLAIN,
        {"string": [*map(str, range(10))] * 2, "int64": [*range(10)] * 2},
    ),
    "truth values beside numbers": Refused(
        "b.parquet: column 'x' is bool, but int64 in a.parquet",
        [pa.array([row % 2 for row in range(10)]), pa.array([row % 2 > 0 for row in range(10)])],
        {"int64": [row % 2 for row in range(10)] * 2, "bool": [row % 2 > 0 for row in range(10)] * 2},
    ),
    "lists beside numbers": Refused(
        "b.parquet: column 'x' is list<.*, but int64 in a.parquet",
        [pa.array(range(10)), pa.array([[row] for row in range(10)])],
        {"string": [*map(str, range(10)), *(f"[{row}]" for row in range(10))]},
    ),
    "large numbers beside fractions": Refused(
        f"a.parquet: x is {EXACT} .int64., which float64 cannot represent exactly",
        [pa.array([EXACT] * 10), pa.array([0.5] * 10)],
        {"float64": [float(EXACT)] * 10 + [0.5] * 10, "string": [str(EXACT)] * 10 + ["0.5"] * 10},
    ),
}  # fmt: skip


def pin(folder: Path, columns: list[pa.Array], name: str = "it", **said: Any) -> pa.Table:
    for file, column in zip("abc", columns, strict=False):
        rows = len(column)
        table = pa.table({"x": column, "row": range(rows), "y": [row % 2 for row in range(rows)]})
        pq.write_table(table, folder / f"{file}.parquet")
    data = Data.model_validate({"files": ["*.parquet"], "inputs": ["x"], "labels": ["y"], "meta": ["row"]} | said)
    return pin_source(data, name, folder, folder)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_type_holds_is_refused_in_one_line_and_its_remedy_works(cache, tmp_path, name):
    case = REFUSED[name]
    with pytest.raises(FarshiftError, match=case.said.replace(": x", "(, row 1)?: x")) as refused:
        pin(tmp_path, case.columns)
    assert 'types = { x = "string" }' in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "loaders").exists()
    for number, (kind, values) in enumerate(case.remedies.items()):
        built = pin(tmp_path, case.columns, f"it{number}", types={"x": kind})
        table = built.table()
        assert built.schema["x"].type == kind
        assert sorted(table["x"].to_pylist()) == sorted(values)


def test_a_column_without_values_is_left_out(cache, tmp_path):
    with pytest.raises(FarshiftError, match="a.parquet.* has (no values|no row with .*): remove "):
        pin(tmp_path, [pa.nulls(10)])


def test_times_with_a_zone_and_without_are_not_of_one_column(cache, tmp_path):
    columns = [pa.array(TIMES[:10]), pa.array(TIMES[:10], pa.timestamp("us", "UTC"))]
    with pytest.raises(FarshiftError, match="a.parquet: column 'x' has times without a zone, but b.parquet with one"):
        pin(tmp_path, columns, inputs=["row"], meta=["x"])


def test_parts_of_a_microsecond_are_not_lost_in_silence(cache, tmp_path):
    column = [pa.array([*range(0, 9000, 1000), 1], pa.timestamp("ns"))]
    with pytest.raises(FarshiftError, match=r"a.parquet.*: x is 1970-01-01 00:00:00.000000001 .timestamp.ns.., which"):
        pin(tmp_path, column, inputs=["row"], meta=["x"])
    built = pin(tmp_path, column, inputs=["row"], meta=["x"], types={"x": "string"})
    assert "1970-01-01 00:00:00.000000001" in built.table()["x"].to_pylist()


def test_files_whose_types_differ_are_read_where_one_type_holds_both(cache, tmp_path):
    halves = [row / 2 for row in range(10)]
    built = pin(tmp_path, [pa.array(range(10)), pa.array(halves, pa.float32()), pa.array(halves)])
    assert built.schema["x"].type == "float64"
    assert sorted(built.table()["x"].to_pylist()) == sorted([*range(10), *halves, *halves])


def test_whole_numbers_are_no_truth_values_but_0_and_1(cache, tmp_path):
    with pytest.raises(FarshiftError, match="a.parquet, row 3: x is 2 .int64., which bool cannot represent exactly"):
        pin(tmp_path, [pa.array(range(10))], types={"x": "bool"})
