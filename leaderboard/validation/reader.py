"""The reader: a separate process, and the only code that decodes untrusted input: a card's TOML to plain dictionaries,
a predictions file to an Arrow file of plain columns, or a rejection.

It receives a file and an empty one as open descriptors, decodes the first into the second, and reports the result in
one line of JSON. Its memory, time, files and environment are limited to what that needs. A card is returned as JSON;
predictions as an Arrow file of plain columns, without any metadata.

    python -P -m farshift.leaderboard.validation.reader MEMORY     (stdin: a socket)
"""

from __future__ import annotations

import errno
import json
import math
import mmap
import os
import sys
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

from ...core.documents import parse_toml
from .limits import DECODED_BYTES, MIB, NAME_BYTES, ROW_GROUPS, ExpectedTable, FileRejected

if TYPE_CHECKING:
    import socket

    import pyarrow as pa


LINE = 1 << 16
"""The longest line between the processes."""


def answer_request(request: dict[str, Any], content: pa.Buffer, sink: BinaryIO) -> dict[str, Any]:
    """Process a request. Returns the problems of the file, if any, or what failed on this machine."""
    try:
        if request["what"] == "card":
            sink.write(json.dumps(read_card(content.to_pybytes())).encode())
        else:
            read_predictions(content, ExpectedTable(**request["wanted"]), sink)
        sink.flush()
    except MemoryError:
        return {"findings": [("reader-memory", "needs more memory than a reader has", "")]}
    except FileRejected as error:
        return {"findings": error.findings}
    except OSError as error:
        if error.errno not in DISK:
            raise
        return {"failed": os.strerror(error.errno)}
    return {"findings": []}


def _serve_requests(line: socket.socket) -> None:
    """Answer requests, each one line with two descriptors, until the other side closes the connection."""
    import socket

    import pyarrow as pa

    line.sendall(b'{"ready": true}\n')
    while True:
        request, files, _, _ = socket.recv_fds(line, LINE, 2)
        if not request:
            return
        source, target = files
        try:
            size = os.fstat(source).st_size
            _allow_seconds(json.loads(request)["seconds"])
            sink = os.fdopen(target, "wb")
            mapped = mmap.mmap(source, size, access=mmap.ACCESS_READ) if size else b""
            reply = answer_request(json.loads(request), pa.py_buffer(mapped), sink)
            with suppress(OSError):  # the disk is full, which `answer_request` reported
                sink.close()
        finally:
            os.close(source)
        line.sendall(json.dumps(reply).encode() + b"\n")


def _allow_seconds(seconds: float) -> None:
    """Limit the processor time from now on; the system ends the process after that."""
    import resource

    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used + seconds) + 1, hard))


def limit_resources(memory: int) -> None:
    """Limit this process: its address space (bytes), and the files that it may write and open."""
    import resource
    import signal

    bounds = {"AS": memory, "FSIZE": DECODED_BYTES, "CORE": 0, "NOFILE": 32}
    for name, most in bounds.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        allowed = resource.getrlimit(kind)[1]  # keep a lower limit of the parent (ulimit)
        bound = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (bound, bound))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit then raises an error


def main() -> None:
    import socket

    import pyarrow as pa
    import pyarrow.parquet

    line = socket.socket(fileno=0)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    limit_resources(int(sys.argv[1]))
    _serve_requests(line)


DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of this machine's disk, not of a file."""

_FROM_CPP = (RuntimeError, IndexError, TypeError, ArithmeticError)
"""The exceptions into which Cython translates C++ exceptions (std::exception, out_of_range, bad_cast, range_error
..)."""

_BATCH_BYTES = 16 * MIB
_BATCH_ROWS = 16_384
_THRIFT = {"thrift_string_size_limit": 16 * MIB, "thrift_container_size_limit": 1_000_000}


def _get_file_size_limit() -> float:
    """The maximum size of a file that this process may write."""
    import resource

    soft = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return float("inf") if soft == resource.RLIM_INFINITY else soft


def read_card(content: bytes) -> dict[str, Any]:
    """The tables of a card. Raises `FileRejected` if it is not TOML, or has values that no card needs."""
    try:
        card = parse_toml(content.decode("utf-8"))
        json.dumps(card, allow_nan=False)
    except TypeError as error:
        raise FileRejected.because("toml-invalid", "dates and times are not accepted") from error
    except ValueError as error:  # invalid TOML or UTF-8, NaN, a number of thousands of digits, deep nesting
        raise FileRejected.because("toml-invalid", f"not valid TOML: {str(error)[:200]}") from error
    return card


def read_predictions(content: pa.Buffer, expected: ExpectedTable, sink: BinaryIO) -> None:
    """Write the predictions in `content`, a Parquet file, to `sink` as an Arrow file of plain columns in a fixed order.
    The file's metadata are checked against the expected rows before any of it is decoded. Raises `FileRejected`, and
    `OSError` if the disk is full."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False, **_THRIFT)
        _check_footer(file.metadata, expected)
        schema = _check_schema(file.schema_arrow, expected)
        # Check again, now that these columns are known to exist and to be strings.
        options = {"pre_buffer": False, "read_dictionary": _list_text_columns(schema), **_THRIFT}
        file = pq.ParquetFile(pa.BufferReader(content), metadata=file.metadata, **options)
        batches = file.iter_batches(_BATCH_ROWS, columns=schema.names, use_threads=False)
        with pa.ipc.new_file(pa.PythonFile(sink, "w"), schema) as writer:
            rows = sum(_copy_batch(batch, writer, schema, expected) for batch in batches)
        if rows != file.metadata.num_rows:
            raise FileRejected.because("parquet-unreadable", f"has {rows} rows, and states {file.metadata.num_rows}")
    except (MemoryError, pa.ArrowMemoryError) as error:
        raise FileRejected.because("reader-memory", "needs more memory than a reader has") from error
    except (pa.ArrowException, OSError, ValueError, *_FROM_CPP) as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG and _get_file_size_limit() < DECODED_BYTES:
            raise  # this machine's limit on files (ulimit -f), not a problem of the file
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise FileRejected.because("parquet-too-large", f"decodes to over {DECODED_BYTES} bytes") from error
        if isinstance(error, OSError) and error.errno in DISK:
            raise
        message = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileRejected.because("parquet-unreadable", f"not readable Parquet: {message[:200]}") from error


def _check_footer(metadata: Any, expected: ExpectedTable) -> None:
    """Refuse a file whose footer states more rows, row groups or bytes than the expected rows can need."""
    rows, groups = metadata.num_rows, metadata.num_row_groups
    if not 0 <= rows <= 2 * expected.rows + 1000:
        raise FileRejected.because("parquet-rows", f"{rows} rows, far more than the {expected.rows} of the benchmark")
    if groups > ROW_GROUPS or metadata.num_columns > len(expected.columns) + 1:
        most = f"at most {ROW_GROUPS} of {len(expected.columns) + 1} are accepted"
        raise FileRejected.because("parquet-claims", f"{groups} row groups of {metadata.num_columns} columns; {most}")
    widths = {"string": 4 + NAME_BYTES, "uint64": 8, "int64": 8, "double": 8, "int32": 4, "int8": 4}
    widest = {name: widths[kind] for name, kind in expected.columns.items()} | {"scores": 8 * max(1, expected.classes)}
    if expected.prediction == "string":
        widest["prediction"] = 4 + expected.text_bytes
    counted, total = 0, 0
    for number in range(groups):
        group = metadata.row_group(number)
        counted += group.num_rows
        for index in range(group.num_columns):
            column = group.column(index)
            name, size = column.path_in_schema.split(".")[0], column.total_uncompressed_size
            total += size
            if (
                size < 0
                or column.num_values < 0
                or size > 2 * rows * widest.get(name, 8) + MIB
                or total > DECODED_BYTES
            ):
                raise FileRejected.because("parquet-too-large", f"states an unpacked size of {size}", name[:60])
    if counted != rows:
        raise FileRejected.because("parquet-claims", f"its row groups have {counted} rows, its footer states {rows}")


def _check_schema(got: pa.Schema, expected: ExpectedTable) -> pa.Schema:
    """Select the columns. All missing, unknown, repeated and mistyped columns are refused at once."""
    import pyarrow as pa

    findings, names = [], [field.name for field in got]
    scores = pa.list_(pa.float32(), expected.classes) if expected.classes and "scores" in names else None
    plain = {name: pa.type_for_alias(kind) for name, kind in expected.columns.items()}
    for name in dict.fromkeys([*plain, *names]):
        kinds = [field.type for field in got if field.name == name]
        if not kinds:
            findings.append(("parquet-column", "is missing", name))
        elif len(kinds) > 1:
            findings.append(("parquet-column", "occurs twice", name[:60]))
        elif name == "scores":
            if scores is None or not _is_list(kinds[0], expected.classes):
                fit = (
                    f"a fixed-size list of {expected.classes} floats" if expected.classes else "no scores for this task"
                )
                findings.append(("parquet-type", f"is {str(kinds[0])[:80]}, expected {fit}", name))
        elif name not in plain:
            findings.append(("parquet-column", "is not a column of a predictions file", name[:60]))
        elif kinds[0] != plain[name]:
            findings.append(("parquet-type", f"is {str(kinds[0])[:80]!r}, expected {expected.columns[name]!r}", name))
    if findings:
        raise FileRejected(findings)
    return pa.schema(plain | ({} if scores is None else {"scores": scores}))


def _is_list(kind: pa.DataType, classes: int) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_list(kind) and kind.value_type == pa.float32() and kind.list_size == classes)


def _copy_batch(batch: pa.RecordBatch, writer: Any, schema: pa.Schema, expected: ExpectedTable) -> int:
    """Write a batch as plain columns, and return its number of rows.

    Strings come dictionary-encoded: a small file can repeat a long string very often, so their lengths are measured
    before they are written, in pieces of bounded size."""
    import numpy as np

    columns = [batch.column(name) for name in schema.names]
    sizes = np.zeros(batch.num_rows, np.int64)
    for column, name in zip(columns, schema.names, strict=True):
        column.validate(full=True)  # finds invalid UTF-8, among others
        if name in _list_text_columns(schema):
            lengths = _measure_lengths(column)
            most = expected.text_bytes if name == "prediction" else NAME_BYTES
            if lengths.max(initial=0) > most:
                what = f"a text of {lengths.max()} bytes; at most {most} are accepted"
                raise FileRejected.because("value-text", what, name)
            sizes += lengths
    piece = np.cumsum(sizes) // _BATCH_BYTES
    edges = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), batch.num_rows]
    for start, stop in pairwise(edges):
        writer.write_batch(_make_plain_batch([column.slice(start, stop - start) for column in columns], schema))
    return int(batch.num_rows)


def _list_text_columns(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if str(field.type) == "string"]


def _measure_lengths(column: Any) -> Any:
    """The length in bytes of each string of a dictionary column, shape (n,); 0 if it is missing."""
    import numpy as np
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.take(pc.binary_length(column.dictionary), column.indices), 0)
    # From its buffer: pyarrow's own conversion loads pandas, which takes longer than all else that a reader loads.
    values = np.frombuffer(lengths.buffers()[1] or b"", np.int32)
    return values[lengths.offset : lengths.offset + len(lengths)].astype(np.int64)


def _make_plain_batch(columns: list[Any], schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    plain = [
        column if column.type == kind else column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)
    ]
    return pa.record_batch(plain, schema=schema)


if __name__ == "__main__":
    main()
