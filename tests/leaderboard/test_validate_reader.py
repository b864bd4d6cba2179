"""The process that decodes what strangers sent: it cannot hang, grow, reach out or take its parent with it."""

from __future__ import annotations

import dataclasses
import io
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import farshift as fs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError
from farshift.leaderboard.submission.validate import validate_submission
from farshift.leaderboard.validation import reader as decoding
from farshift.leaderboard.validation.limits import ExpectedTable, FileRejected, ReaderLimits
from farshift.leaderboard.validation.process import ReaderProcess
from farshift.leaderboard.validation.reader import _measure_lengths, answer_request
from fuzz.packing import parts
from fuzz.raw_zip import Entry, written
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.attack("entrant", "Parquet files and cards that crash, hang or exhaust the reader")

TEXTS = ExpectedTable("string", 0, 3, 400_000_000)
CLASSES = ExpectedTable("int64", 0, 3, 0)


@pytest.fixture(scope="module")
def reader() -> Iterator[ReaderProcess]:
    with ReaderProcess(ReaderLimits(seconds=20)) as result:
        yield result


def card(reader: ReaderProcess, text: bytes) -> dict:
    with tempfile.TemporaryFile() as file:
        file.write(text)
        return reader.card(file)


def table(predictions, **columns) -> pa.Table:
    count = len(predictions)
    plain = {
        "part": pa.array(["id_test"] * count),
        "row_id": pa.array(range(count), pa.uint64()),
        "seed": pa.array([0] * count, pa.int32()),
        "candidate": pa.array(["last"] * count),
        "prediction": predictions,
        "status": pa.array([0] * count, pa.int8()),
    }
    return pa.table(plain | columns)


def parquet(found: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(found, sink, **options)
    return sink.getvalue()


def decoded(reader: ReaderProcess, content: bytes, wanted: ExpectedTable = CLASSES) -> pa.Table:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        return reader.predictions(file, wanted)


def names(refusal) -> list[str]:
    return [name for name, _, _ in refusal.value.findings]


def test_cards_and_predictions_come_back_as_they_were(reader):
    assert card(reader, b'a = 1\n[b]\nc = ["x", 0.1, true]') == {"a": 1, "b": {"c": ["x", 0.1, True]}}
    result = table(pa.array([3, None, 5]))
    again = decoded(reader, parquet(result, compression="zstd", row_group_size=1))
    assert again.equals(result.select(again.column_names))
    assert again.schema.metadata is None


def test_texts_that_are_copied_in_several_pieces_come_back_as_they_were(monkeypatch):
    monkeypatch.setattr(decoding, "_BATCH_BYTES", 16)
    given_table = table(pa.array(["a" * 9, "b" * 9, None, "c" * 40, "", "d"]))
    sink = io.BytesIO()
    decoding.read_predictions(pa.py_buffer(parquet(given_table)), dataclasses.replace(TEXTS, rows=6), sink)
    with pa.ipc.open_file(sink.getvalue()) as file:
        assert file.num_record_batches > 2
        assert file.read_all().equals(given_table.select(file.schema.names))


def test_scores_that_a_task_does_not_have_are_refused_as_such():
    scores = pa.array([[0.5, 0.5]] * 3, pa.list_(pa.float32(), 2))
    content = pa.py_buffer(parquet(table(pa.array(range(3)), scores=scores)))
    with pytest.raises(FileRejected, match="expected no scores for this task"):
        decoding.read_predictions(content, CLASSES, io.BytesIO())


def test_a_card_that_takes_too_long_is_named_and_the_next_one_read():
    """The TOML parser of the standard library takes many seconds for a list of four megabytes."""
    slow = b"a = [" + b"1," * 2_000_000 + b"]"
    with ReaderProcess(ReaderLimits(seconds=0.6, bytes_per_second=1 << 30)) as reader:
        began = time.monotonic()
        with pytest.raises(FileRejected, match="took over (1 s of processor time|7 s) to read") as refusal:
            card(reader, slow)
        assert names(refusal) == ["reader-time"]
        assert time.monotonic() - began < 60
        reader.limits = ReaderLimits()
        assert card(reader, b"a = 1") == {"a": 1}


def test_a_file_that_needs_too_much_memory_is_named():
    """Some kB of Parquet that unpack to one text of 150 MB."""
    content = parquet(table(pa.array(["x" * 150_000_000])), compression="zstd", write_statistics=False)
    assert len(content) < 100_000
    with ReaderProcess(ReaderLimits(memory=400 << 20, seconds=30)) as reader:
        with pytest.raises(FileRejected, match="more memory than a reader has") as refusal:
            decoded(reader, content, TEXTS)
        assert names(refusal) == ["reader-memory"]
        assert card(reader, b"a = 1") == {"a": 1}


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_reader_that_is_killed_is_named_and_another_reads_on(how):
    with ReaderProcess() as reader:
        assert card(reader, b"a = 1") == {"a": 1}
        os.kill(reader._process.pid, how)
        with pytest.raises(FileRejected, match=rf"crashed the process that read it \(signal {how.name}\)") as refusal:
            card(reader, b"a = 2")
        assert names(refusal) == ["reader-crash"]
        assert card(reader, b"a = 3") == {"a": 3}


def test_a_reader_that_cannot_start_is_not_the_submissions_fault(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with ReaderProcess() as reader, pytest.raises(FarshiftError, match="cannot start here"):
        card(reader, b"a = 1")


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="reads /proc")
def test_a_reader_has_its_limits_no_secrets_and_is_gone_after_a_check(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_BOARD_KEY", "a secret")
    with ReaderProcess() as reader:
        card(reader, b"a = 1")
        about = Path(f"/proc/{reader._process.pid}")
        limits = {line[:26].strip(): line[26:].split()[0] for line in (about / "limits").read_text().splitlines()}
        assert limits["Max address space"] == str(1 << 30)
        assert limits["Max core file size"] == "0"
        assert limits["Max open files"] == "32"
        assert b"secret" not in (about / "environ").read_bytes()
        assert len(list((about / "fd").iterdir())) <= 8
    assert not about.exists()


def test_pickled_types_in_a_file_are_never_loaded(reader, tmp_path):
    """The metadata by which older pyarrow unpickled a type (CVE-2023-47248)."""
    flag = tmp_path / "unpickled"
    says = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": f"cpathlib\nPath.touch\n(cpathlib\nPath\n(S'{flag}'\ntRtR.",
    }
    result = table(pa.array([1, 2, 3]))
    schema = result.schema.set(4, result.schema.field(4).with_metadata(says)).with_metadata({"pandas": "{}"})
    content = parquet(pa.table(result.columns, schema=schema))
    again = decoded(reader, content)
    assert again.schema.field("prediction").metadata is None
    assert not flag.exists()


def varint(number: int) -> bytes:
    """A whole number as Thrift's compact protocol writes it."""
    number, out = number << 1, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


@pytest.mark.parametrize("claimed", [10**9, 2**62])
def test_a_footer_that_claims_a_billion_rows_is_refused_before_anything_is_decoded(reader, claimed):
    content = parquet(table(pa.array(np.zeros(1234, np.int64))))
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8].replace(varint(1234), varint(claimed))
    began = time.monotonic()
    with pytest.raises(FileRejected, match=f"{claimed} rows, far more than the 3 of the benchmark") as refusal:
        decoded(reader, content[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert names(refusal) == ["parquet-rows"]
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("found", "options", "name"),
    [
        (table(pa.array([1, 2, 3]), part=pa.array(["x" * 2000] * 3)), {}, "value-text"),
        (table(pa.array(range(9))).slice(0, 0), {}, ""),
        (table(pa.array(range(3000))), {}, "parquet-rows"),
        (table(pa.array(range(1000)), part=pa.array(["x" * 5000] * 1000)), {"use_dictionary": False}, "parquet-too-large"),
        (table(pa.array(range(3)), **{f"c{n}": pa.array([0] * 3) for n in range(20)}), {}, "parquet-claims"),
        (table(pa.array(range(3)), prediction=pa.array([{"a": 1}] * 3)), {}, "parquet-type"),
        (table(pa.array(range(3)), prediction=pa.array([[[1]]] * 3)), {}, "parquet-type"),
        (table(pa.array(range(3)), scores=pa.array([[0.5, 0.5]] * 3, pa.list_(pa.float32(), 2))), {}, "parquet-type"),
    ],
)  # fmt: skip
def test_what_a_file_claims_and_holds_is_bounded(reader, found, options, name):
    content = parquet(found, **options)
    if not name:
        assert decoded(reader, content).num_rows == found.num_rows
        return
    with pytest.raises(FileRejected) as refusal:
        decoded(reader, content)
    assert names(refusal) == [name]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 3, b"PAR1" + bytes(100) + b"PAR1", b"PARE" * 5])
def test_what_is_no_parquet_is_refused(reader, content):
    with pytest.raises(FileRejected, match="not readable Parquet") as refusal:
        decoded(reader, content)
    assert names(refusal) == ["parquet-unreadable"]


def test_too_many_row_groups_are_refused(reader):
    """The bound is that of the process, so the file has more than it."""
    content = parquet(table(pa.array(np.zeros(10_001, np.int64))), row_group_size=1)
    with pytest.raises(FileRejected, match="10001 row groups") as refusal:
        decoded(reader, content, ExpectedTable("int64", 0, 10_001, 0))
    assert names(refusal) == ["parquet-claims"]


def test_a_submission_whose_reader_breaks_says_so_and_all_else(runs, tmp_path, monkeypatch):
    """The predictions of one run break the reader; a problem of another run is told all the same."""
    good = parts(fs.read_run(runs[0]))
    listed = good.card["runs"][0]
    both = dataclasses.replace(good, card=good.card | {"runs": [listed, listed]})
    content = written([*both.listed(), Entry("runs/1.toml", b"a ="), Entry("predictions/1.parquet", b"")])
    (tmp_path / "s.zip").write_bytes(content)
    before = ReaderProcess.predictions

    def broken(self, file, wanted):
        os.kill(self._process.pid, signal.SIGSEGV)
        return before(self, file, wanted)

    monkeypatch.setattr(ReaderProcess, "predictions", broken)
    with pytest.raises(FarshiftError, match="2 problems: .*SIGSEGV.*runs/1.toml: not valid TOML"):
        validate_submission(tmp_path / "s.zip")


def test_a_footer_with_any_one_byte_changed_is_read_or_refused_by_name(reader):
    """pyarrow turns some of these into C++ exceptions and some into an abort: both are named, by a reader that lives
    on or by its parent."""
    content = parquet(table(pa.array([1, 2, 3])))
    length = int.from_bytes(content[-8:-4], "little")
    outcomes = set()
    for position in range(len(content) - 8 - length, len(content) - 8, 5):
        changed = bytearray(content)
        changed[position] = (changed[position] + 1) % 256
        try:
            decoded(reader, bytes(changed))
        except FileRejected as refused:
            outcomes |= {name for name, _, _ in refused.findings}
            if "reader-crash" in outcomes:
                assert "signal SIG" in str(refused) or refused.findings[0][0] != "reader-crash"
    assert "parquet-unreadable" in outcomes
    assert card(reader, b"a = 1") == {"a": 1}


def test_a_cpp_exception_of_any_kind_is_unreadable_parquet(monkeypatch):
    """Found by coverage-guided fuzzing: std::exception comes through Cython as a RuntimeError."""
    for error in (
        RuntimeError("Definition level histogram size mismatch"),
        IndexError("x"),
        TypeError("std::bad_cast"),
    ):

        def raising(*_, e=error, **__):
            raise e

        monkeypatch.setattr(pq, "ParquetFile", raising)
        with pytest.raises(FileRejected, match="not readable Parquet: ") as refusal:
            decoding.read_predictions(pa.py_buffer(b""), CLASSES, io.BytesIO())
        assert names(refusal) == ["parquet-unreadable"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_not_the_submissions_fault(monkeypatch):
    content = pa.py_buffer(parquet(table(pa.array([1, 2, 3]))))
    expected = {"what": "predictions", "wanted": vars(CLASSES)}
    for request, source in (({"what": "card"}, pa.py_buffer(b"a = 1")), (expected, content)):
        with open("/dev/full", "wb", buffering=0) as full:  # noqa: PTH123
            assert answer_request(request, source, full) == {"failed": "No space left on device"}
    monkeypatch.setattr(
        ReaderProcess, "_hear", lambda self, until: {"ready": True, "failed": "No space left on device"}
    )
    with ReaderProcess() as reader, pytest.raises(FarshiftError, match="set TMPDIR to another disk"):
        card(reader, b"a = 1")


@given(
    words=st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=20),
    data=st.data(),
)
def test_the_bytes_of_each_text_are_counted_where_columns_are_cut_and_values_missing(words, data):
    places = data.draw(st.lists(st.one_of(st.none(), st.integers(0, len(words) - 1)), max_size=40))
    cut = data.draw(st.integers(0, len(places)))
    head = data.draw(st.integers(0, min(p for p in [len(words) - 1, *places] if p is not None)))
    # a dictionary that is itself a slice of a longer one, as a file that was read in pieces may give it
    dictionary = pa.array(words, pa.string()).slice(head)
    indices = pa.array([None if p is None else p - head for p in places], pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, dictionary).slice(cut)
    texts = column.to_pylist()
    assert _measure_lengths(column).tolist() == [0 if text is None else len(text.encode()) for text in texts]
    assert _measure_lengths(column).dtype == np.int64
