"""The reader of tables: what it makes of each format, and that it names the file and the line of what is wrong."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.acquire.archive_files import open_archive
from farshift.loaders.acquire.piecewise import build_in_pieces
from farshift.loaders.acquire.source import add_row_ids
from farshift.loaders.readers import _table_files, table
from farshift.loaders.readers.table import read_table as read
from farshift.splits.schema import Field, Schema
from hypothesis import given
from hypothesis import strategies as st

PEOPLE = "name,Age,kind,score,score\nann,3,a,1.5,9\nbob,40,b,-2,9\ncid,?,a,7,9\ndan,5,B,20,9\n"


def file(folder: Path, content: str | bytes, name: str = "people.csv") -> dict[str, Path]:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return {name: folder / name}


def schema(**types: str) -> Schema:
    return Schema(tuple(Field(name, kind, "input") for name, kind in types.items()))


def rows(files: dict[str, Path], kinds: dict[str, str], **options) -> dict[str, list]:
    expected = schema(**kinds)
    return expected.conform(read(files, schema=expected, **options), "here").to_pydict()


def test_columns_become_fields_of_the_types_of_the_schema(tmp_path):
    result = rows(
        file(tmp_path, PEOPLE),
        {"who": "string", "years": "int64", "high": "bool", "both": "float32[2]", "last": "float64", "kind": "int64"},
        columns={"who": "name", "years": "Age", "high": "score", "both": ["Age", 3], "last": 4, "kind": "kind"},
        missing=["?"],
        if_missing="drop",
        above={"high": 1.5},
        maps={"kind": ["a", ["b", "B"]]},
    )
    assert result == {
        "who": ["ann", "bob", "dan"],
        "years": [3, 40, 5],
        "high": [False, False, True],
        "both": [[3.0, 1.5], [40.0, -2.0], [5.0, 20.0]],
        "last": [9.0, 9.0, 9.0],
        "kind": [0, 1, 1],
    }


def test_without_columns_every_field_has_the_column_of_its_name(tmp_path):
    files = file(tmp_path, "n,text\n1,a\n2,b\n")
    assert rows(files, {"text": "string", "n": "int64"}) == {"text": ["a", "b"], "n": [1, 2]}


SAME = {"n": [1, 2, 3], "x": [0.1, -2.5, 1e300], "text": ["a,b", 'say "so"', "é\tü"], "ok": [True, False, True]}
KINDS = {"n": "int64", "x": "float64", "text": "string", "ok": "bool"}


def written(form: str) -> bytes:
    records = [dict(zip(SAME, row, strict=True)) for row in zip(*SAME.values(), strict=True)]
    if form in ("csv", "tsv"):
        out = io.StringIO()
        writer = csv.DictWriter(out, list(SAME), delimiter="," if form == "csv" else "\t")
        writer.writeheader()
        writer.writerows(records)
        return out.getvalue().encode()
    if form == "jsonl":
        return "".join(json.dumps(record) + "\n\n" for record in records).encode()
    if form == "json":
        return json.dumps(records).encode()
    out = io.BytesIO()
    pq.write_table(pa.table(SAME), out)
    return out.getvalue()


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_every_format_gives_the_same_rows_compressed_or_not_and_from_archives(tmp_path, form):
    content = written(form)
    name = f"rows.{form}"
    zstd = pa.BufferOutputStream()
    with pa.CompressedOutputStream(zstd, "zstd") as out:
        out.write(content)
    for ending, packed in {
        "": content,
        ".gz": gzip.compress(content[:9]) + gzip.compress(content[9:]),
        ".bz2": bz2.compress(content),
        ".xz": lzma.compress(content),
        ".zst": zstd.getvalue().to_pybytes(),
    }.items():
        assert rows(file(tmp_path, packed, name + ending), KINDS) == SAME
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
        archive.writestr(f"data/{name}", content)
    with tarfile.open(tmp_path / "two.tar.gz", "w:gz") as archive:
        for path, inside in ((f"data/{name}", content), ("data/README", b"no table")):
            info = tarfile.TarInfo(path)
            info.size = len(inside)
            archive.addfile(info, io.BytesIO(inside))
    assert rows({"one.zip": tmp_path / "one.zip"}, KINDS) == SAME
    assert rows({"two.tar.gz": tmp_path / "two.tar.gz"}, KINDS, members=f"*.{form}") == SAME
    assert rows({"tree": open_archive(tmp_path)}, KINDS, members=name) == SAME


def test_an_archive_of_several_files_asks_which(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", "n\n1\n")
        archive.writestr("b.csv", "n\n2\n")
    files = {"a.zip": tmp_path / "a.zip"}
    with pytest.raises(
        BadDefinition, match=r"a\.zip holds a\.csv, b\.csv: choose which to read with options = \{ members = "
    ):
        read(files, schema=schema(n="int64"))
    assert rows(files, {"n": "int64"}, members=["*.csv"]) == {"n": [1, 2]}
    with pytest.raises(BadData, match=r"a\.zip has no file c\.csv \(it has a\.csv, b\.csv\)"):
        read(files, schema=schema(n="int64"), members="c.csv")


def test_a_file_without_a_header_is_read_by_places_or_by_names_of_ones_own(tmp_path):
    files = file(tmp_path, "5 0  7\n 6 1  8 \n", "a.data")
    options = {"format": "csv", "separator": "spaces"}
    assert rows(files, {"y": "int64", "x": "uint8[2]"}, columns={"y": 1, "x": [0, 2]}, header=False, **options) == {
        "y": [0, 1],
        "x": [[5, 7], [6, 8]],
    }
    columns = {"x": {"first": "b", "last": "c"}}
    assert rows(files, {"x": "float32[2]"}, columns=columns, header=["a", "b", "c"], **options)["x"] == [[0, 7], [1, 8]]


def test_separators_quotes_comments_and_heads_are_as_they_are_said(tmp_path):
    assert rows(
        file(tmp_path, "# a\nx;y\n# b\n1,5;z\n"),
        {"x": "float64", "y": "string"},
        separator=";",
        comment="#",
        decimal=",",
    ) == {"x": [1.5], "y": ["z"]}
    assert rows(
        file(tmp_path, "a note\nof two lines\nx::y\n1::2\n"), {"x": "int64", "y": "int64"}, separator="::", skip=2
    ) == {"x": [1], "y": [2]}
    assert rows(file(tmp_path, 'x\ty\n"half\t1\n'), {"x": "string"}, separator="\t", quote="") == {"x": ['"half']}
    assert rows(
        file(tmp_path, 'x,y\n"two\nlines, and ""quotes""", 1 \n'), {"x": "string", "y": "int64"}, trim=True
    ) == {"x": ['two\nlines, and "quotes"'], "y": [1]}
    assert rows(file(tmp_path, "x,y\na\\,b,1\n"), {"x": "string"}, escape="\\") == {"x": ["a,b"]}
    assert rows(file(tmp_path, "\ufeffx,y\r\n1,2\r\n\r\n3,4"), {"x": "int64", "y": "int64"}) == {
        "x": [1, 3],
        "y": [2, 4],
    }


def test_encodings_are_named_and_a_file_may_have_another(tmp_path):
    files = file(tmp_path, "x\né\n", "a.csv") | file(tmp_path, "x\né\n".encode("latin-1"), "b.csv")
    files |= file(tmp_path, "x\né\n".encode("utf-16"), "c.csv")
    each = {"b.csv": {"encoding": "latin-1"}, "c.*": {"encoding": "utf-16"}}
    assert rows(files, {"x": "string"}, each=each) == {"x": ["é"] * 3}
    with pytest.raises(BadData, match=r"^b\.csv, line 2: not utf-8 text: set the file's encoding, such as options = "):
        read(files, schema=schema(x="string"))
    with pytest.raises(BadData, match=r"^b\.csv, line 2: not ascii text"):
        read({"b.csv": files["b.csv"]}, schema=schema(x="string"), encoding="ascii")
    with pytest.raises(BadDefinition, match="unknown encoding 'latin-77'"):
        read(files, schema=schema(x="string"), encoding="latin-77")


def test_missing_cells_are_an_error_dropped_or_filled_and_may_be_told(tmp_path):
    files = file(tmp_path, "age,sex\n1,F\n?,M\n3,?\n,F\n")
    kinds, options = {"age": "int64", "sex": "string"}, {"missing": ["?"]}
    with pytest.raises(BadData, match=r"^people\.csv, line 3: age is missing: set `if_missing` to"):
        rows(files, kinds, **options)
    with pytest.raises(BadData, match=r"^people\.csv, line 5: age is missing"):
        rows(files, kinds, missing=["?"], if_missing={"sex": "drop", "age": "error"}, without={"age": "?"})
    assert rows(files, kinds, **options, if_missing="drop") == {"age": [1], "sex": ["F"]}
    filled = rows(files, kinds, **options, if_missing={"age": -1, "sex": "drop"})
    assert filled == {"age": [1, -1, -1], "sex": ["F", "M", "F"]}
    output = rows(files, kinds | {"no_age": "bool"}, **options, is_missing={"no_age": "age"}, if_missing={"sex": ""})
    assert output == {"age": [1, 0, 3, 0], "sex": ["F", "M", "", "F"], "no_age": [False, True, False, True]}
    assert rows(files, {"sex": "string"}, columns={"sex": "sex"}) == {"sex": ["F", "M", "?", "F"]}


def test_values_for_all_files_for_one_file_and_from_a_files_name(tmp_path):
    files = file(tmp_path, "n\n1\n2\n", "air_Xi_an_2013.csv") | file(tmp_path, "note\nn\n5\n", "air_Huairou_2014.csv")
    kinds = {"n": "int64", "station": "string", "year": "int64", "unit": "string", "at": "int64", "odd": "bool"}
    result = rows(
        files,
        kinds,
        columns={"n": "n", "station": "station", "year": "from_year"},
        from_name="air_{station}_{from_year:[0-9]{4}}.csv",
        constants={"unit": "g", "odd": False},
        each={"*Huairou*": {"skip": 1, "constants": {"odd": True}}},
        row_number="at",
    )
    assert result == {
        "n": [1, 2, 5],
        "station": ["Xi_an", "Xi_an", "Huairou"],
        "year": [2013, 2013, 2014],
        "unit": ["g", "g", "g"],
        "at": [0, 1, 0],
        "odd": [False, False, True],
    }
    with pytest.raises(
        BadData, match=r"air_Xi_an_2013\.csv: its name does not fit the pattern of from_name, 'b_\{x\}'"
    ):
        read(files, from_name="b_{x}")


def test_rows_are_kept_by_value_by_range_and_named_by_their_place(tmp_path):
    files = file(tmp_path, "n,k\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(10)))
    kinds = {"n": "int64", "half": "string"}
    ranges = {"half": {"first": [0, 5], "second": [5, 10]}}
    result = rows(files, kinds, where={"k": ["a", "c"]}, without={"n": 4}, between={"n": [2, 8]}, ranges=ranges)
    assert result == {"n": [2, 6, 8], "half": ["first", "second", "second"]}
    with pytest.raises(BadData, match=r"^people\.csv, line 11: no range of 'half' contains row 9"):
        rows(files, kinds, ranges={"half": {"first": [0, 9]}})


def test_a_sample_is_drawn_by_place_and_a_smaller_one_is_part_of_a_larger(tmp_path):
    files = file(tmp_path, "n\n" + "".join(f"{number}\n" for number in range(500)))
    few, many = (rows(files, {"n": "int64"}, sample={"rows": count, "seed": "s"})["n"] for count in (50, 400))
    assert len(set(many)) == 400
    assert set(few) < set(many)
    assert few == sorted(few), "the file's order"
    odd = rows(
        files, {"n": "int64"}, sample={"rows": 200, "seed": "s"}, without={"n": [str(n) for n in range(0, 500, 2)]}
    )
    assert len({n for n in odd["n"] if n % 2}) == 200
    with pytest.raises(BadDefinition, match="cannot sample 501 of 500 rows"):
        rows(files, {"n": "int64"}, sample={"rows": 501, "seed": "s"})


def test_json_has_records_at_a_place_values_in_objects_and_lists_as_text_or_tensors(tmp_path):
    output = {
        "data": {
            "all": [
                {"q": {"text": "a", "n": 1}, "grid": [[1, 2], [3, 4]], "extra": None},
                {"q": {"text": "b", "n": 2}, "grid": [[0, 0], [0, 0]]},
            ]
        }
    }
    files = file(tmp_path, json.dumps(output), "tasks.json")
    result = rows(
        files,
        {"text": "string", "n": "int64", "grid": "int64[2,2]", "as_text": "string", "extra": "string"},
        records="data.all",
        columns={"text": "q.text", "n": "q.n", "grid": "grid", "as_text": "grid", "extra": "extra"},
        if_missing={"extra": "none"},
    )
    assert result == {
        "text": ["a", "b"],
        "n": [1, 2],
        "grid": [[1, 2, 3, 4], [0, 0, 0, 0]],
        "as_text": ["[[1,2],[3,4]]", "[[0,0],[0,0]]"],
        "extra": ["none", "none"],
    }
    keyed = file(tmp_path, '{"one": {"n": 1}, "two": {"n": 2}}', "keyed.json")
    assert rows(keyed, {"key": "string", "n": "int64"}) == {"key": ["one", "two"], "n": [1, 2]}
    with pytest.raises(BadData, match=r"tasks\.json: no 'none' on the path `records`, data\.none"):
        rows(files, {"n": "int64"}, records="data.none")


def test_a_column_of_numbers_apart_by_spaces_is_a_tensor(tmp_path):
    files = file(tmp_path, "pixels,y\n1 2 3,0\n4 5 6,1\n")
    assert rows(files, {"pixels": "uint8[3]"}) == {"pixels": [[1, 2, 3], [4, 5, 6]]}
    files = file(tmp_path, "pixels,y\n1 2 3,0\n4 5,1\n")
    with pytest.raises(BadData, match=r"^people\.csv, line 3: pixels has 2 numbers, not 3"):
        rows(files, {"pixels": "uint8[3]"})


def test_structures_of_parquet_have_their_fields_as_columns(tmp_path):
    table = pa.table({"image": [{"bytes": b"\x89PNG", "path": "a"}], "n": pa.array([2.0])})
    pq.write_table(table, tmp_path / "a.parquet")
    files = {"a.parquet": tmp_path / "a.parquet"}
    result = rows(files, {"image": "image", "n": "int64"}, columns={"image": "image.bytes", "n": "n"})
    assert result == {"image": [b"\x89PNG"], "n": [2]}


def test_lines_are_told_apart_by_a_pattern(tmp_path):
    files = file(tmp_path, "IN: jump OUT: JUMP\r\nIN: run twice OUT: RUN RUN\n", "tasks.txt")
    pattern = "^IN: (?P<command>.+) OUT: (?P<actions>.+)$"
    result = rows(files, {"command": "string", "actions": "string"}, format="lines", pattern=pattern)
    assert result == {"command": ["jump", "run twice"], "actions": ["JUMP", "RUN RUN"]}
    files = file(tmp_path, "IN: jump OUT: JUMP\njump\n", "tasks.txt")
    with pytest.raises(BadData, match=r"tasks\.txt, line 2: 'jump' does not fit the pattern"):
        rows(files, {"command": "string"}, format="lines", pattern=pattern)


def test_a_table_of_texts_is_cut_at_line_feeds_alone_and_its_quotes_are_taken_off(tmp_path):
    reviews = 'Sentiment\tText\nNegative\tDull.\x85 Long.\nPositive\t"A ""must"" see."\n'
    columns, maps = {"text": "Text", "positive": "Sentiment"}, {"positive": ["Negative", "Positive"]}
    rows = read(file(tmp_path, reviews, "orig"), format="tsv", columns=columns, maps=maps, row_number="at").to_pylist()
    assert rows == [
        {"text": "Dull.\x85 Long.", "positive": 0, "at": 0},
        {"text": 'A "must" see.', "positive": 1, "at": 1},
    ]


@pytest.mark.parametrize(
    ("content", "options", "complaint"),
    [
        ("a,b\n1,2\n3\n", {}, "line 3: 1 cells, but the first line has 2"),
        ("# x\na,b\n1,2\n\n1,2,3\n", {"comment": "#"}, "line 5: 3 cells, but the first line has 2"),
        ('a,b\n1,"2\n2"\nx,2\n', {}, r"line 4: n \(column 'a'\) is 'x', not a whole number"),
        ("a,b\n1.0,2\n1.5,2\n", {}, r"line 3: n \(column 'a'\) is '1.5', not a whole number"),
        ("a,b\n1,2\n1,y\n", {"maps": {"n": {"1": 0}}, "columns": {"n": "b"}}, r"line 2: n \(column 'b'\) is '2', which is not one of '1'"),
        ('a,b\n1,2\n"1,2\n3,4\n', {}, "after line 2: an unmatched quote"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_and_line(tmp_path, content, options, complaint):
    options = {"columns": {"n": "a"}} | options
    with pytest.raises(BadData, match=rf"^people\.csv, {complaint}"):
        read(file(tmp_path, content), schema=schema(n="int64"), **options)


@pytest.mark.parametrize(
    ("content", "name", "complaint"),
    [
        ('{"n": 1}\n\n{"n": 2\n', "a.jsonl", r"line 3: not JSON: Expecting ',' delimiter"),
        ('{"n": 1}\n[2]\n', "a.jsonl", r"line 2: '\[2\]' is not a JSON object"),
        ('{"n": 1}\n{"n": "x"}\n', "a.jsonl", "line 2: n is 'x', not a whole number"),
        ('{"n": 1}\n{"m": 2}\n', "a.jsonl", "line 2: n is missing"),
        ('[{"n": 1}, {"n": 1.5}]', "a.json", "record 2: n is '1.5', not a whole number"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_json_is_named_too(tmp_path, content, name, complaint):
    with pytest.raises(BadData, match=rf"^{name}, {complaint}"):
        read(file(tmp_path, content, name), schema=schema(n="int64"))


CUT_OFF = gzip.compress(b"n\n" + bytes(range(48, 58)) * 99, mtime=0)[:-9]
"""Without the time of its making: the names of tests must be the same in every worker."""


@pytest.mark.parametrize(
    ("content", "name", "complaint"),
    [
        ("a,b\n1,2\n", "people.csv", r"people\.csv has no column 'n' \(it has a, b\)"),
        ("", "people.csv", r"people\.csv has no rows"),
        ("n\n", "people.csv", r"people\.csv has no rows"),
        ("3", "a.json", "a.json is not a list of records"),
        ("PAR1", "a.parquet", "a.parquet: not a readable Parquet file"),
        (CUT_OFF, "a.csv.gz", "a.csv.gz cannot be read, or is cut off"),
        ("PK\x03\x04 no zip", "a.csv", "a.csv is not a readable (zip|tar)"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, content, name, complaint):
    with pytest.raises(BadData, match=complaint):
        read(file(tmp_path, content, name), schema=schema(n="int64"))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"coloms": {}}, "table: option coloms: no such key: did you mean columns"),
        ({"header": "yes no"}, "table: option header"),
        ({"if_missing": "maybe"}, "table: option if_missing"),
        ({"is_missing": {"no": "x"}}, "'x' is not a field with a column"),
        ({"format": "lines"}, "the format lines needs a `pattern`"),
    ],
)
def test_options_that_are_none_are_refused(tmp_path, options, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        read(file(tmp_path, "n\n1\n"), schema=schema(n="int64"), **options)


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r\x1f", exclude_categories=["Cs"]), max_size=5)


@given(st.lists(st.tuples(CELL, CELL, st.integers(-5, 5)), min_size=1, max_size=30), st.integers(1, 40))
def test_what_pythons_own_writer_wrote_is_read_back_in_blocks_of_any_size(tmp_path_factory, cells, block):
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([("a", "b", "n"), *cells])
    files = file(tmp_path_factory.mktemp("csv"), out.getvalue())
    expected = schema(a="string", b="string", n="int64")
    before, _table_files._CHUNK = _table_files._CHUNK, block
    try:
        result = list(table.read(files, schema=expected))
    finally:
        _table_files._CHUNK = before
    assert pa.concat_tables(result).to_pylist() == [dict(zip("abn", row, strict=True)) for row in cells]


def test_a_long_file_comes_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(_table_files, "_BLOCK", 1 << 12)
    numbers = np.arange(5000)
    files = file(tmp_path, "n\n" + "\n".join(map(str, numbers)) + "\nx\n")
    result = []
    with pytest.raises(BadData, match=r"^people\.csv, line 5002: n is 'x'"):
        result.extend(table.read(files, schema=schema(n="int64")))
    assert len(result) > 3
    assert np.array_equal(np.concatenate([block["n"].to_numpy() for block in result])[:4000], numbers[:4000])


def test_a_source_gives_its_reader_the_schema_in_memory_and_on_disk(tmp_path, cache):
    expected = schema(n="int64", text="string")
    arguments = {"files": file(tmp_path, "n,text\n1.0,a\n2.0,\n")}
    digest = build_in_pieces(table.read(schema=expected, **arguments), expected, "here", tmp_path / "built.arrow")
    with pa.OSFile(str(tmp_path / "built.arrow")) as built:
        assert sorted(pa.ipc.open_file(built).read_all()["text"].to_pylist()) == ["", "a"]
    assert digest == add_row_ids(expected.conform(read(schema=expected, **arguments), "here"), expected)[1]
