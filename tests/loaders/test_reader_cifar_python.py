"""CIFAR in its Python form: batches as Python 2 and Python 3 pickle them, read without unpickling; others refused."""

from __future__ import annotations

import io
import os
import pickle  # noqa: TID251  (the test makes what must not be unpickled)
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from farshift.core.errors import BadData
from farshift.loaders.readers.cifar import cifar, read_batch
from hypothesis import given
from hypothesis import strategies as st

ROWS = 6
PIXELS = np.random.default_rng(3).integers(0, 256, (ROWS, 3072), np.uint8)
FINE, COARSE = [7, 99, 0, 3, 255, 7], [1, 19, 0, 2, 19, 1]
NAMES = [f"picture_{number}.png" for number in range(ROWS)]


def text(value: str) -> bytes:
    raw = value.encode("latin-1")
    return b"U" + bytes([len(raw)]) + raw if len(raw) < 256 else b"T" + struct.pack("<i", len(raw)) + raw


def array(values: np.ndarray) -> bytes:
    rows, width = values.shape
    return (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x01(cnumpy\nndarray\nq\x02K\x00\x85U\x01btRq\x03(K\x01"
        + b"M" + struct.pack("<H", rows) + b"M" + struct.pack("<H", width) + b"\x86"
        + b"cnumpy\ndtype\nq\x04U\x02u1K\x00K\x01\x87Rq\x05(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + text(values.tobytes().decode("latin-1"))
        + b"tb"
    )  # fmt: skip


def as_python_2_wrote(**entries) -> bytes:
    """Protocol 2 as Python 2 has it: byte strings, no Unicode; the instructions are in the published files' order."""
    out = b"\x80\x02}q\x00("
    for name, value in entries.items():
        out += text(name)
        if isinstance(value, np.ndarray):
            out += array(value)
        elif isinstance(value, str):
            out += text(value)
        else:
            items = [text(item) if isinstance(item, str) else b"K" + bytes([item]) for item in value]
            out += b"]q\x06(" + b"".join(items) + b"e"
    return out + b"u."


BATCH = {"batch_label": "training batch 1 of 5", "labels": FINE, "data": PIXELS, "filenames": NAMES}


def held(found: dict) -> dict:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}


def test_a_batch_of_python_2_is_read():
    raw = as_python_2_wrote(**BATCH)
    assert pickle.loads(raw, encoding="latin1")["filenames"] == NAMES  # the bytes of the test are a pickle
    assert held(read_batch(raw, "here")) == held(BATCH)


def test_a_batch_that_python_3_pickled_again_is_read():
    assert held(read_batch(pickle.dumps(BATCH, protocol=2), "here")) == held(BATCH)


@given(
    st.lists(st.integers(0, 2**31 - 1), max_size=3000),
    st.lists(st.text(st.characters(max_codepoint=255), max_size=300)),
    st.integers(1, 4),
)
def test_a_batch_is_what_pickle_says_it_is(numbers, texts, rows):
    batch = {"labels": numbers, "names": texts, "data": np.arange(rows * 5, dtype=np.uint8).reshape(rows, 5)}
    assert held(read_batch(pickle.dumps(batch, protocol=2), "here")) == held(batch)


class Malicious:
    def __init__(self, function, *given):
        self.call = (function, given)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ({"data": Malicious(os.system, "touch unpickled")}, "names 'posix.system'"),
        ({"data": Malicious(exec, "open('unpickled', 'w')")}, "names '__builtin__.exec'"),
        ({"data": PIXELS.astype(np.int32)}, "calls numpy.dtype, unlike an array of bytes"),
        (
            {"data": np.array([object()])},
            "names '__builtin__.object'|names 'copy_reg._reconstructor'|calls numpy.dtype",
        ),
        ({"data": np.asfortranarray(PIXELS)}, "not an array of bytes in C order"),
        ({"data": 1.5}, "the instruction BINFLOAT"),
        ({"data": 2**80}, "the instruction LONG1"),
        ({"data": [[1]]}, "entry 'data' is not a text"),
        ({"data": (1, 2)}, "entry 'data' is not a text"),
        ([1, 2], "is not a pickled dictionary"),
        (Path("x"), r"names 'pathlib"),
    ],
)
def test_what_no_batch_needs_is_refused_by_name_and_nothing_is_run(batch, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadData, match=said):
        read_batch(pickle.dumps(batch, protocol=2), "here")
    assert not list(tmp_path.iterdir())


def test_calls_and_states_of_what_is_no_array_are_refused():
    for body, output in (
        (b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R.", "calls numpy.dtype"),
        (b"cnumpy\nndarray\n(K\x05tR.", "calls numpy.ndarray"),
        (b"c_codecs\nencode\n(X\x01\x00\x00\x00aU\x04rot1tR.", "calls _codecs.encode"),
        (b"}}b.", "sets the state of a value that is not an array"),
        (b"K\x01K\x02R.", "calls no function"),
        (b"(dp0\n.", "the instruction DICT"),
        (b"Vtext\n.", "the instruction UNICODE"),
        (b"\x8e\x01.", "cut off"),
        (b"h\x05.", "not a batch of CIFAR"),
        (b"K\x01K\x02a.", "not a batch of CIFAR"),
        (b"e.", "not a batch of CIFAR"),
        (b"}K\x01.", "not a batch of CIFAR"),
    ):
        with pytest.raises(BadData, match=output):
            read_batch(b"\x80\x02" + body, "here")
    with pytest.raises(BadData, match="protocol 4"):
        read_batch(pickle.dumps(BATCH, protocol=4), "here")


@given(st.data())
def test_damaged_batches_are_refused_or_read_and_never_crash(data):
    raw = bytearray(as_python_2_wrote(labels=FINE, filenames=NAMES, data=PIXELS[:2, :40]))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(raw)))
    try:
        read_batch(bytes(raw[:end]), "here")
    except BadData as error:
        assert "here" in str(error) and "\n" not in str(error)


def test_an_array_cut_short_is_refused():
    raw = as_python_2_wrote(**BATCH).replace(b"M" + struct.pack("<H", ROWS), b"M" + struct.pack("<H", ROWS + 1))
    with pytest.raises(BadData, match="cannot reshape"):
        read_batch(raw, "here")


@pytest.fixture
def archive(tmp_path):
    def packed(**members: bytes) -> Path:
        with tarfile.open(tmp_path / "cifar.tar.gz", "w:gz") as tape:
            for name, content in members.items():
                info = tarfile.TarInfo(f"cifar-python/{name}")
                info.size = len(content)
                tape.addfile(info, io.BytesIO(content))
        return tmp_path / "cifar.tar.gz"

    return packed


def read(path: Path, **options):
    given = {"archive": path.name, "labels": ["label"], "train": ["cifar-python/train"], "test": ["cifar-python/test"]}
    return cifar({path.name: path}, **{**given, "python": {"label": "labels"}, **options})


def test_the_python_form_gives_the_rows_of_the_binary_form(archive):
    train, test = as_python_2_wrote(**BATCH), as_python_2_wrote(labels=[4], data=PIXELS[:1], filenames=NAMES[:1])
    result = read(archive(train=train, test=test))
    binary = [
        np.column_stack([labels, data]).astype(np.uint8).tobytes()
        for labels, data in ((FINE, PIXELS), ([4], PIXELS[:1]))
    ]
    same = read(archive(train=binary[0], test=binary[1]), python=None)
    assert result.equals(same)
    assert result["label"].to_pylist() == [*FINE, 4]


def test_two_labels_are_taken_by_their_names(archive):
    raw = as_python_2_wrote(data=PIXELS, fine_labels=FINE, coarse_labels=COARSE)
    names = {"coarse": "coarse_labels", "fine": "fine_labels"}
    result = read(archive(train=raw, test=raw), labels=["coarse", "fine"], python=names)
    assert result["fine"].to_pylist() == FINE * 2 and result["coarse"].to_pylist() == COARSE * 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": FINE[:-1]}, "its 'labels' are not 6 whole numbers between 0 and 255"),
        ({"labels": ["cat"] * ROWS}, "its 'labels' are not 6 whole numbers"),
        ({"data": PIXELS[:, :100]}, "its 'data' are not rows of 3072 bytes"),
        ({"data": "none"}, "its 'data' are not rows of 3072 bytes"),
    ],
)
def test_a_batch_that_does_not_fit_is_named(archive, change, said):
    raw = as_python_2_wrote(**{**BATCH, **change})
    with pytest.raises(BadData, match=f"cifar.tar.gz: cifar-python/train: {said}"):
        read(archive(train=raw, test=raw))
