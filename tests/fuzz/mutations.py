"""Mutations of a good submission at each of its layers: the zip, the two cards, and the predictions."""

from __future__ import annotations

import copy
import io
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w
from fuzz.draw import Draw
from fuzz.packing import Parts


def zip_bytes(draw: Draw, good: Parts) -> bytes:
    """The bytes of the zip, damaged anywhere; often in its directory."""
    return draw.damaged(good.packed(), near=draw.one([None, 400]))


def changed(draw: Draw, card: dict[str, Any]) -> dict[str, Any]:
    """A card with a few values, anywhere in it, replaced, removed, added or wrapped."""
    card = copy.deepcopy(card)
    for _ in range(1 + draw.below(2)):
        table: Any = card
        while True:
            inner = [
                value
                for value in (table.values() if isinstance(table, dict) else table)
                if isinstance(value, dict | list) and value
            ]
            if not inner or draw.chance(0.4):
                break
            table = draw.one(inner)
        if not table:
            continue
        key = draw.one(table) if isinstance(table, dict) else draw.below(len(table))
        what = draw.below(6)
        if what < 3:
            table[key] = draw.value()
        elif what == 3:
            del table[key]
        elif what == 4:
            for _ in range(draw.one([1, 5, 30, 200])):
                table[key] = draw.one([[table[key]], {"a": table[key]}])
        elif isinstance(table, dict):
            table[draw.one(["extra", "é", "a.b", "", "format", "name"])] = draw.value()
        else:
            table += copy.deepcopy(table) * draw.one([1, 1, 1, 300])
    return card


def _text(draw: Draw, card: dict[str, Any]) -> bytes:
    """A card's text, damaged; or TOML that is hard to read."""
    text = tomli_w.dumps(card).encode()
    what = draw.below(12)
    if what < 8:
        return draw.damaged(text)
    hard = [
        b"a = " + b"[" * draw.below(3000),
        b"a = " + b"{a=" * draw.below(3000),
        b".".join([b"a"] * draw.below(3000)) + b" = 1",
        b"[" + b".".join([b"a"] * draw.below(500)) + b"]\n",
        b"[[a]]\n" * draw.below(3000),
        b'a = """' + b"\\\n" * draw.below(3000),
        b"a = " + b"9" * draw.below(10_000),
        b"a = 1_" + b"0_" * draw.below(3000),
        b"\n".join(b"k%d = {}" % number for number in range(draw.below(3000))),
        b"a = 0x" + b"f" * draw.below(5000),
        "k = '\ud800'".encode("utf-8", "surrogatepass"),
        b"#" * draw.below(200_000),
    ]
    return draw.one([draw.one(hard), text + b"\n" + draw.one(hard), draw.one(hard) + b"\n" + text])


def submission_card(draw: Draw, good: Parts) -> bytes:
    assert isinstance(good.card, dict)
    card = _text(draw, good.card) if draw.chance(0.3) else _dumped(changed(draw, good.card))
    return Parts(card, good.run, good.predictions, draw.one([0, 0, 8])).packed()


def run_card(draw: Draw, good: Parts) -> bytes:
    """A run's card, mostly with digests that fit."""
    assert isinstance(good.run, dict)
    if draw.chance(0.2):
        return Parts(good.card, _text(draw, good.run), good.predictions).packed()
    result = Parts(good.card, changed(draw, good.run), good.predictions)
    result = result.signed() if draw.chance(0.9) else result
    assert isinstance(result.run, dict)
    return Parts(result.card, _dumped(result.run), result.predictions).packed()


def _dumped(card: dict[str, Any]) -> bytes:
    try:
        return tomli_w.dumps(card).encode("utf-8", "surrogatepass")
    except (RecursionError, ValueError):  # nested too deeply, or a number too long, to be written
        return b"a = " + b"[" * 2000


def parquet_bytes(draw: Draw, good: Parts) -> bytes:
    """The bytes of the Parquet file, damaged anywhere; often in its footer, or in how long that is. Digests fit."""
    content = good.predictions
    what = draw.below(10)
    if what < 6:
        (footer,) = struct.unpack("<I", content[-8:-4])
        tail = draw.damaged(content[-8 - footer : -8], draw.one([1, 3, 10]))
        length = len(tail) if draw.chance(0.9) else draw.one([0, 1, 2**31, 2**32 - 1, draw.below(2**32)])
        content = content[: -8 - footer] + tail + struct.pack("<I", length) + b"PAR1"
    elif what < 9:
        content = draw.damaged(content[:-2000]) + content[-2000:]
    else:
        content = draw.damaged(content)
    return _of(draw, good, content)


def table(draw: Draw, good: Parts) -> bytes:
    """A Parquet file that is one, of another table, written in another way. Digests fit."""
    result = pq.read_table(io.BytesIO(good.predictions))
    for _ in range(1 + draw.below(2)):
        try:
            result = draw.one(_TABLES)(draw, result)
        except (
            pa.ArrowException,
            ValueError,
            KeyError,
            IndexError,
            TypeError,
            OverflowError,
            MemoryError,
        ):  # no such change of this table
            continue
    options: dict[str, Any] = {"compression": draw.one(["snappy", "gzip", "zstd", "brotli", "lz4", "none"])}
    if draw.chance(0.3) and not any(pa.types.is_dictionary(kind) for kind in result.schema.types):
        options |= {"use_dictionary": False}  # a bomb would be written at its full length
    if draw.chance(0.2):
        options |= {"data_page_version": "2.0"}
    if draw.chance(0.2):
        options |= {"row_group_size": draw.one([97, 500])}
    if draw.chance(0.05):
        options |= {"data_page_size": 64}
    if draw.chance(0.2):  # dictionaries come back as plain columns then, however long their texts are
        options |= {"store_schema": False}
    sink = io.BytesIO()
    try:
        pq.write_table(result.slice(0, 20_000), sink, **options)
    except (pa.ArrowException, ValueError, OSError, MemoryError):  # a table that Parquet has no place for
        return parquet_bytes(draw, good)
    content = sink.getvalue()
    return _of(draw, good, draw.damaged(content, 2, near=3000) if draw.chance(0.2) else content)


def _of(draw: Draw, good: Parts, content: bytes) -> bytes:
    return Parts(good.card, copy.copy(good.run), content, draw.one([0, 0, 0, 8])).signed().packed()


def _set(found: pa.Table, name: str, column: Any) -> pa.Table:
    return found.set_column(found.column_names.index(name), name, column)


def _drop(draw: Draw, found: pa.Table) -> pa.Table:
    return found.drop([draw.one(found.column_names)])


def _twice(draw: Draw, found: pa.Table) -> pa.Table:
    name = draw.one(found.column_names)
    return found.append_column(draw.one([name, "extra", "x.y", "\x00"]), found[name])


def _retyped(draw: Draw, found: pa.Table) -> pa.Table:
    name = draw.one(found.column_names)
    kinds = ["int8", "int64", "uint64", "double", "float", "string", "large_string", "binary", "bool", "date32"]
    return _set(found, name, found[name].cast(draw.one(kinds), safe=False))


def _encoded(draw: Draw, found: pa.Table) -> pa.Table:
    name = draw.one(found.column_names)
    return _set(found, name, found[name].combine_chunks().dictionary_encode())


def _nested(draw: Draw, found: pa.Table) -> pa.Table:
    name = draw.one(found.column_names)
    column = found[name].combine_chunks()
    for _ in range(draw.one([1, 2, 10, 60])):
        if draw.chance(0.5):
            column = pa.StructArray.from_arrays([column], ["a"])
        else:
            column = pa.ListArray.from_arrays(pa.array(np.arange(len(column) + 1, dtype=np.int32)), column)
    return _set(found, name, column)


def _valued(draw: Draw, found: pa.Table) -> pa.Table:
    name = draw.one([name for name in found.column_names if name != "scores"])
    values = found[name].to_pylist()
    bad = [
        None,
        0,
        -1,
        5,
        2**63 - 1,
        2**64 - 1,
        127,
        float("nan"),
        float("inf"),
        -1e308,
        "",
        "x" * 100_001,
        "\x00",
        "id_test",
    ]
    for _ in range(draw.one([1, 1, 3, 50])):
        values[draw.below(len(values))] = draw.one(bad)
    return _set(found, name, pa.array(values, found.schema.field(name).type))


def _scores(draw: Draw, found: pa.Table) -> pa.Table:
    share = draw.one([0.0, 0.5, -1.0, float("nan"), float("inf"), 1e30])
    size = draw.one([0, 1, 2, 4, 5, 100])
    flat = np.full(found.num_rows * size, share, np.float32)
    stored = found.drop(["scores"]) if "scores" in found.column_names else found
    return stored.append_column("scores", pa.FixedSizeListArray.from_arrays(pa.array(flat), size))


def _rows(draw: Draw, found: pa.Table) -> pa.Table:
    what, start = draw.below(5), draw.below(found.num_rows)
    if what == 0:
        return found.slice(start)
    if what == 1:
        return found.slice(0, 0)
    if what == 2:
        return pa.concat_tables([found, found.slice(start, 3)])
    if what == 3:
        return pa.concat_tables([found] * draw.one([2, 3]))
    return found.take(np.argsort(found["row_id"].to_numpy() * 7))


def _bomb(draw: Draw, found: pa.Table) -> pa.Table:
    """Few bytes in the file, many in memory."""
    text = draw.one(["a", "\x00"]) * draw.one([2_000, 100_000, 500_000])
    column = pa.DictionaryArray.from_arrays(np.zeros(found.num_rows, np.int8), [text])
    return _set(found, draw.one(["part", "candidate", "prediction"]), column)


_TABLES = [*[_drop, _twice, _retyped, _encoded, _nested, _scores] * 3, *[_valued] * 9, *[_rows] * 6, _bomb]
MUTATIONS = {
    "zip bytes": zip_bytes,
    "submission card": submission_card,
    "run card": run_card,
    "parquet bytes": parquet_bytes,
    "table": table,
}


def mutated(number: int, bases: list[Parts], name: str = "1") -> tuple[str, bytes]:
    """Case `number`: at which layer a submission was mutated, and its bytes."""
    draw = Draw(f"{name}/{number}")
    layer = draw.one(["zip bytes", "submission card", "run card", "run card", *["parquet bytes"] * 3, *["table"] * 2])
    return layer, MUTATIONS[layer](draw, draw.one(bases))
