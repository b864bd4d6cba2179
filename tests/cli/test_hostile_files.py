"""Files made to exhaust memory or time: each ends in one line and exit code 2, in a process that may have little more
memory than it begins with."""

from __future__ import annotations

import gzip
import io
import json
import resource
import select
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from tarfile import XHDTYPE, TarInfo
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz.raw_zip import Entry, written
from loopback import listening
from support import run_in_process

DEEP = 30_000
MEMORY = 2 << 30
"""Bytes of address space that the process may add to those that it has when the first file comes."""
SECONDS = 300


def answer_requests() -> None:
    """The process: for each line of arguments, or of code, what came of it."""
    from farshift.core.errors import FarshiftError

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, list):
            done = run_in_process(*request)
            result = [done.returncode, done.stderr]
        else:
            try:
                exec(request, {})
                result = [0, ""]
            except FarshiftError as error:
                result = [2, f"farshift: error: {error}"]
        print(json.dumps(result), flush=True)


class Process:
    """The process that reads the files; another one where it was killed."""

    def __init__(self) -> None:
        code = f"import sys; sys.path[:0] = [{str(Path(__file__).parent.parent)!r}, {str(Path(__file__).parent)!r}]\n"
        code += "import farshift.cli, pyarrow.parquet, PIL.Image, scipy.io, test_hostile_files as it\n"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code + "it.answer_requests()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def ask(self, request: list[object] | str) -> tuple[int, str]:
        """The exit code and stderr of a command, or of code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if isinstance(request, list):
            request = list(map(str, request))  # type: ignore[assignment]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.end()
            self.__init__()  # type: ignore[misc]
            pytest.fail("the process hung" if not ready else "the process died")
        code, errors = json.loads(line)
        return code, errors

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    started = Process()
    yield started
    started.end()


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


def built(folder: Path, file: str, content: bytes, data: str = "") -> list[object]:
    """`splits build` of a draft over one file."""
    (folder / file).write_bytes(content)
    (folder / "t.toml").write_text(DRAFT.format(data=data or f'files = ["{file}"], inputs = ["x"]'))
    return ["splits", "build", folder / "t.toml", "--out", folder / "splits/manifests"]


def read_array(folder: Path, file: str, content: bytes, array: str = "") -> str:
    """Code that reads the arrays of one file."""
    (folder / file).write_bytes(content)
    field = f"{file}:{array}" if array else file
    return (
        "from pathlib import Path\nfrom farshift.loaders.readers import arrays\n"
        f"list(arrays.read({{{file!r}: Path({str(folder / file)!r})}}, fields={{'x': {field!r}}}))"
    )


NOTHING = 1 << 20
"""Bytes of zeros that a piece unpacks to."""


def deflated(pieces: int) -> bytes:
    """Zeros, as a stream of deflate: a piece that ends on a byte may be repeated."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    piece = packer.compress(bytes(NOTHING)) + packer.flush(zlib.Z_FULL_FLUSH)
    return piece * pieces + packer.flush()


def board(card: str) -> Callable[[Path], list[object]]:
    def make(folder: Path) -> list[object]:
        (folder / "board").mkdir()
        (folder / "board/board.toml").write_text(card)
        (folder / "board/ledger.jsonl").write_text("")
        return ["board", "verify", folder / "board"]

    return make


def ledger(folder: Path) -> list[object]:
    board(f'format = 2\nname = "b"\nkey = "{"0" * 64}"\n')(folder)
    (folder / "board/ledger.jsonl").write_text('{"seq":' + "[" * DEEP + "\n")
    return ["board", "standings", folder / "board"]


def deep_run(folder: Path) -> list[object]:
    (folder / "run").mkdir()
    (folder / "run/run.toml").write_text(DOTTED)
    return ["score", folder / "run"]


def family(folder: Path) -> list[object]:
    axes = "".join(f"[[vary]]\nn{axis} = {list('0123456789')}\n" for axis in range(9))
    (folder / "t.toml").write_text(f'name = "x{"".join(f"{{n{axis}}}" for axis in range(9))}"\n{axes}')
    return [*f"splits build {folder / 't.toml'} --out {folder / 'out'}".split()]


def equal_texts(inside: bool) -> Callable[[Path], list[object]]:
    def make(folder: Path) -> list[object]:
        rows = 20_000
        texts = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array(["x" * 1_000_000]))
        column: pa.Array = texts
        if inside:  # as files of pictures are stored
            files = texts.cast(pa.dictionary(pa.int32(), pa.binary()))
            column = pa.StructArray.from_arrays([files, pa.array(["a.png"] * rows)], ["bytes", "path"])
        sites = pa.array(["A", "B", "C", "D"] * (rows // 4))
        sink = io.BytesIO()
        schema = pa.schema({"x": column.type, "y": pa.string(), "site": pa.string()})
        pq.write_table(pa.table([column, sites, sites], schema=schema), sink, store_schema=False)
        return built(folder, "a.parquet", sink.getvalue())

    return make


def equal_numbers(folder: Path) -> list[object]:
    rows = 25_000_000
    sink = io.BytesIO()
    column = pa.array(np.broadcast_to(np.int8(7), rows))
    pq.write_table(pa.table({"x": column, "y": column, "site": column}), sink, row_group_size=rows)
    return built(folder, "a.parquet", sink.getvalue())


def long_header(folder: Path) -> list[object]:
    head = TarInfo("a")
    head.type, head.size = XHDTYPE, 2 << 30
    content = gzip.compress(head.tobuf()) + gzip.compress(bytes(NOTHING)) * 2048
    return built(folder, "a.tar.gz", content, IMAGES.replace("zip", "tar.gz"))


def npy(shape: tuple[int, ...], content: bytes = b"") -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return out.getvalue() + content


def bomb(name: str, pieces: int) -> bytes:
    """A zip of one member, which is zeros."""
    lies = {"packed": len(deflated(pieces)), "size": pieces * NOTHING}
    entry = Entry(name, deflated(pieces), 0, lies | {"method": 8}, lies | {"method": 8})
    return written([entry])


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def matlab(kind: int, content: bytes) -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM" + struct.pack("<II", kind, len(content)) + content


def sparse(folder: Path) -> str:
    from scipy.io import savemat
    from scipy.sparse import csc_matrix

    out = io.BytesIO()
    savemat(out, {"x": csc_matrix(([1.0], ([0], [0])), shape=(10**7, 10**6))})
    return read_array(folder, "a.mat", out.getvalue(), "x")


def hdf5(texts: bool) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        h5py = pytest.importorskip("h5py")
        with h5py.File(folder / "a.h5", "w") as file:
            if texts:  # NumPy would give each the space of the longest
                file["x"] = ["y" * 1_000_000, *["z"] * 100_000]
            else:
                file.create_dataset("x", (10**11,), "f8", chunks=(10**6,), compression="gzip")
        return read_array(folder, "a.h5", (folder / "a.h5").read_bytes(), "x")

    return make


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def picture(folder: Path) -> str:
    side = 30_000  # one bit a pixel
    rows = b"\x78\x9c" + deflated(side * (side // 8 + 1) // NOTHING + 1)
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    (folder / "a.png").write_bytes(content)
    return (
        "from pathlib import Path\nfrom farshift.loaders.batching.images import decode_images\n"
        f"decode_images([Path({str(folder / 'a.png')!r}).read_bytes()], 8)"
    )


def wav(rate: int, samples: int) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
        data = b"data" + struct.pack("<I", 2 * samples) + bytes(2 * samples)
        content = b"RIFF" + struct.pack("<I", 4 + len(head) + len(data)) + b"WAVE" + head + data
        return f"from farshift.loaders.batching.audio import read_samples\nread_samples({content!r}, 16000, 'a.wav')"

    return make


def setting(name: str, value: object) -> Callable[[Path], str]:
    return lambda folder: (
        "from farshift.baselines.recipe import find_recipe, resolve_settings\n"
        f"resolve_settings(find_recipe({name.split('.')[0]!r}), 'modadd97/xi35', {{{name.split('.')[1]!r}: {value!r}}})"
    )


def pretrained(folder: Path) -> list[object]:
    (folder / "model").mkdir()
    (folder / "model/model.safetensors").write_bytes(b"")
    (folder / "model/config.json").write_text('{"model_type": "bert", "num_hidden_layers": 1000000000}')
    model = f"hf:{folder / 'model'}"
    return ["evaluate", model, "--on", "modadd97/xi35", "--out", folder / "run"]


def generated(folder: Path) -> str:
    (folder / "loaders/sources").mkdir(parents=True)
    (folder / "loaders/sources/big.toml").write_text(
        'name = "big"\nversion = 1\ntitle = "t"\nlicence = "l"\ncitation = "c"\n'
        '[[fields]]\nname = "a"\ntype = "int64"\nrole = "input"\n'
        '[[distributions]]\nname = "d"\ngenerator = "modular_arithmetic"\noptions = { modulus = 1_000_000_000 }\n'
    )
    return (
        "from pathlib import Path\nfrom farshift.loaders.acquire.source import read_source\n"
        f"read_source(Path({str(folder / 'loaders/sources/big.toml')!r})).table()"
    )


NESTED = "x = " + "[" * DEEP
DOTTED = ".".join("x" * DEEP) + " = 1\n"
LONG_ROW = b"x" * NOTHING + b",no,A\n"

IMAGES = 'images = "a.zip/{site}/{y}/{file}", inputs = ["image"]'
BOMB = "refused as a possible decompression bomb"
DEEPER = "it is nested over 100 deep"

CASES: dict[str, tuple[Callable[[Path], list[object] | str], str]] = {
    "a board's card, nested": (board(NESTED), DEEPER),
    "a board's card, dotted": (board(DOTTED), DEEPER),
    "a ledger": (ledger, "line 1 is not a record"),
    "a run's card": (deep_run, DEEPER),
    "a draft": (lambda folder: built(folder, "a.csv", b"", f"files = {'[' * DEEP}"), DEEPER),
    "a draft of a thousand million": (family, "vary"),
    "a Parquet of equal texts": (equal_texts(inside=False), BOMB),
    "a Parquet of equal pictures": (equal_texts(inside=True), BOMB),
    "a Parquet of equal numbers": (equal_numbers, BOMB),
    "an array of 10^12 rows": (lambda folder: read_array(folder, "a.npy", npy((10**12,))), "a.npy: not a readable"),
    "an array of 10^12 rows in a zip": (
        lambda folder: read_array(folder, "a.zip", zipped({"a.npy": npy((10**12,))})).replace("'a.zip'}", "'a.npy'}"),
        "states an array of shape",
    ),
    "an array of 10^12 rows in an npz": (
        lambda folder: read_array(folder, "a.npz", zipped({"x.npy": npy((10**12,))}), "x"), "states an array of shape",
    ),
    "an npz of zeros": (lambda folder: read_array(folder, "a.npz", bomb("x.npy", 4000), "x"), BOMB),
    "a MATLAB variable of zeros": (
        lambda folder: read_array(folder, "a.mat", matlab(15, b"\x78\x9c" + deflated(2600)), "x"), BOMB,
    ),
    "a sparse MATLAB matrix": (sparse, BOMB),
    "an HDF5 array that is not filled": (hdf5(texts=False), BOMB),
    "HDF5 texts": (hdf5(texts=True), BOMB),
    "a zip with a picture of 800 MB": (
        lambda folder: built(folder, "a.zip", bomb("A/no/1.bmp", 800), IMAGES), BOMB,
    ),
    "a tar with a header of 2 GB": (long_header, BOMB),
    "a compressed table": (
        lambda folder: built(folder, "a.csv.gz", gzip.compress(b"x,y,site\n") + gzip.compress(LONG_ROW) * 700), BOMB,
    ),
    "a picture of 900 million pixels": (picture, "cannot be decoded"),
    "a sound at 1 Hz": (wav(1, 100_000), "100,000 samples at 1 Hz"),
    "a sound at 2 GHz": (wav(2_147_483_647, 10), "10 samples at 2,147,483,647 Hz"),
    "a network of 10^9 layers": (setting("mlp.depth", 10**9), "use a number from 0 to 4096"),
    "a layer of 10^9 units": (setting("mlp.width", 10**9), "use a number from 1 to 1048576"),
    "a network of 10^5 widths": (setting("cnn.widths", [1] * 10**5), "use at most 4096 numbers"),
    "a model of 10^9 layers": (pretrained, "num_hidden_layers is 1,000,000,000"),
    "a generator of 10^18 rows": (generated, "modulus = 1,000,000,000"),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="bounds the address space")
@pytest.mark.attack("host", "a file that fills memory or takes forever when it is read")
@pytest.mark.parametrize("case", CASES)
def test_a_file_that_would_fill_memory_or_take_forever_is_one_line(case, process, tmp_path):
    make, words = CASES[case]
    code, errors = process.ask(make(tmp_path))
    lines = [line for line in errors.splitlines() if line.startswith("farshift: error:")]
    assert (code, len(lines), "Traceback" in errors) == (2, 1, False), errors[-2000:]
    assert words in lines[0]


def test_a_board_behind_an_address_is_read_within_the_same_bounds(process, tmp_path):
    board(DOTTED)(tmp_path)

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path / "board"))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    with listening(Handler) as address:
        code, errors = process.ask(["board", "verify", address])
    assert code == 2
    assert DEEPER in errors
