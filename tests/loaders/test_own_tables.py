"""Tables as people write them: the same rows whatever the file looks like, and one line on what to do where it differs."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest
from farshift.core.errors import BadData, Unavailable
from farshift.core.progress import report_to
from farshift.loaders.acquire.own_data import Data
from own_source import pin_source
from support import Heard

ROWS = [(f'said "{row}"\nand went, on', f"{row}.5", "ab"[row % 2]) for row in range(40)]


def table(cut: str = ",", head: str = "text,price,kind") -> str:
    quoted = [(f'"{text.replace(chr(34), 2 * chr(34))}"', price, kind) for text, price, kind in ROWS]
    return "\n".join([head.replace(",", cut), *(cut.join(row) for row in quoted)]) + "\n"


def simple(prices: list[str]) -> str:
    return "text,price,kind\n" + "".join(f"a {row},{price},{'ab'[row % 2]}\n" for row, price in enumerate(prices))


def pinned(home: Path, name: str, content: bytes, told: Heard | None = None, **options):
    (home / name).write_bytes(content)
    output = {"files": [name], "inputs": ["text", "price"], "labels": ["kind"], "options": options}
    with report_to(told if told is not None else Heard()):
        return pin_source(Data.model_validate(output), name.replace(".", "_"), home, home)


@pytest.fixture
def home(tmp_path, cache) -> Path:
    return tmp_path


def test_rows_are_the_same_however_they_are_written(home):
    plain = table()
    commas = table(";").replace(".5;", ",5;")
    result = [
        pinned(home, "plain.csv", plain.encode()),
        pinned(home, "bom.csv", ("\ufeff" + plain).encode()),
        pinned(home, "blank.csv", f"{plain}\n\n".encode()),
        pinned(home, "small.csv.gz", gzip.compress(plain.encode())),
        pinned(home, "small.tsv.bz2", bz2.compress(table("\t").encode())),
        pinned(home, "semicolons.csv", table(";").encode(), separator=";"),
        pinned(home, "commas.csv", commas.encode(), separator=";", decimal=","),
        pinned(home, "wide.csv", plain.encode("utf-16"), encoding="utf-16"),
        pinned(home, "heads.csv", table(head="text, price ,kind").encode()),
    ]
    assert {source.schema["price"].type for source in result} == {"float64"}
    assert len({source.definition.digest for source in result}) == 1
    texts = result[0].table()["text"].to_pylist()
    assert sorted(texts) == sorted(text for text, _, _ in ROWS)


@pytest.mark.parametrize(
    ("content", "options", "complaint"),
    [
        (
            table(";").encode(),
            {},
            r'has no column .text. .*: set the separator of its cells with options = \{ separator = ";" \}',
        ),
        (table("\t").encode(), {}, r'with options = \{ separator = "\\t" \}'),
        (table().encode("utf-16"), {}, r'UTF-16 text: set options = \{ encoding = "utf-16" \}'),
        ("text,price,kind\nä,1,a\n".encode("latin-1"), {}, r"line 2: not utf-8 text: set the file's encoding"),
        (b'text,price,kind\n"open,1,a\n', {}, "an unmatched quote"),
        (simple(["1", ""]).encode(), {}, "line 3: price is missing: set `if_missing`"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_to_do(home, content, options, complaint):
    with pytest.raises((BadData, Unavailable), match=complaint):
        pinned(home, "odd.csv", content, **options)


def test_numbers_with_a_decimal_comma_or_marks_of_what_is_missing_are_told(home):
    output = Heard()
    prices = [f"{row}.5" for row in range(40)]
    quoted = [f'"{price.replace(".", ",")}"' for price in prices]
    assert pinned(home, "commas.csv", simple(quoted).encode(), output).schema["price"].type == "string"
    advice = "set `missing` or `decimal` in options, or `types`"
    assert output.lines[0].startswith("[data] price is text: most of its values are numbers, but not '0,5', ")
    assert output.lines[0].endswith(advice)
    assert pinned(home, "read.csv", simple(quoted).encode(), decimal=",").schema["price"].type == "float64"
    output = Heard()
    holes = simple(["NA", *prices[1:]]).encode()
    assert pinned(home, "holes.csv", holes, output).schema["price"].type == "string"
    assert output.lines[0] == f"[data] price is text: most of its values are numbers, but not 'NA': {advice}"
    filled = pinned(home, "filled.csv", holes, missing=["NA"], if_missing="drop")
    assert (filled.schema["price"].type, filled.table().num_rows) == ("float64", 39)
