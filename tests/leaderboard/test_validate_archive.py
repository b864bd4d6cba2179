"""The zip of a submission: what is damaged, too large or of another layout is refused, by name."""

from __future__ import annotations

import dataclasses
import io
import struct
import zipfile
import zlib
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from farshift.core.errors import BadSubmission
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.submission.validate import validate_submission
from farshift.leaderboard.validation import archive as rules
from farshift.leaderboard.validation.archive import Archive
from farshift.leaderboard.validation.limits import FileRejected
from farshift.leaderboard.validation.problem import REMEDIES, Problems
from fuzz.raw_zip import Entry, written

pytestmark = pytest.mark.attack("entrant", "malicious archives: zip bombs, links, path traversal, overlapping entries")

CARD, RUN, ROWS = "submission.toml", "runs/0.toml", "predictions/0.parquet"


def problems_of(content: bytes) -> list[str]:
    """Names of the problems that a zip has, opened and unpacked."""
    problems = Problems()
    archive = Archive(io.BytesIO(content), "s.zip", problems)
    for name in archive.members:
        try:
            with archive.unpack(name):
                pass
        except FileRejected as rejected:
            problems.add_rejection(name, rejected)
    assert all(item.remedy == REMEDIES[item.name] for item in problems.items)
    return [item.name for item in problems.items]


def listed(**first: object) -> list[Entry]:
    """Two good entries, the first of them with something else about it."""
    return [dataclasses.replace(Entry(CARD, b"format = 2\n" * 10), **first), Entry(RUN, b"format = 2\n")]


def test_a_zip_as_pack_or_a_common_tool_writes_it_is_read(good, runs, tmp_path):
    assert problems_of(pack_runs(runs[:1], tmp_path / "s.zip").read_bytes()) == []
    assert problems_of(written(good.listed())) == []
    deflated = dataclasses.replace(good, method=8).packed()
    (tmp_path / "d.zip").write_bytes(deflated)
    assert len(validate_submission(tmp_path / "d.zip").entries) == 1
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w", method) as bundle:
            for entry in good.listed():
                bundle.writestr(entry.name, entry.content)
        assert problems_of(sink.getvalue()) == []


ZIP64 = 0xFFFFFFFF
LIES = {
    "an encrypted entry": (listed(local={"flags": 1}, central={"flags": 1}), {}, "zip-unexpected"),
    "another method": (listed(local={"method": 14}, central={"method": 14}), {}, "zip-unexpected"),
    "another name inside": (listed(local={"name": b"submission.tomk"}), {}, "zip-damaged"),
    "a longer name inside": (listed(local={"name": b"submission.toml2"}), {}, "zip-damaged"),
    "no header inside": (listed(local={"mark": b"PK\x03\x05"}), {}, "zip-damaged"),
    "stored, of two sizes": (listed(local={"size": 3}, central={"size": 3}), {}, "zip-damaged"),
    "a zip64 size": (listed(local={"size": ZIP64}, central={"size": ZIP64}), {}, "zip-too-large"),
    "a zip64 place": (listed(central={"offset": ZIP64}), {}, "zip-damaged"),
    "a zip64 end": (listed(), {"end": {"count": 0xFFFF}}, "zip-too-many"),
    "a wrong checksum": (listed(local={"crc": 3}, central={"crc": 3}), {}, "zip-damaged"),
    "too short": (listed(method=8, local={"size": 200}, central={"size": 200}), {}, "zip-damaged"),
    "too long": (listed(method=8, local={"size": 20}, central={"size": 20}), {}, "zip-damaged"),
    "no deflated data": (listed(local={"method": 8}, central={"method": 8}), {}, "zip-damaged"),
    "past the end": ([*listed(), Entry(ROWS, b"", central={"offset": 10**6})], {}, "zip-damaged"),
    "too many entries": (listed(), {"end": {"count": 5000}}, "zip-too-many"),
    "a directory elsewhere": (listed(), {"end": {"start": 5}}, "zip-damaged"),
    "a damaged directory": (listed(central={"mark": b"PK\x01\x03"}), {}, "zip-unreadable"),
    "a link": (listed(central={"attributes": 0o120777 << 16}), {}, "zip-unexpected"),
    "a device": (listed(central={"attributes": 0o060644 << 16}), {}, "zip-unexpected"),
    "a folder by name": ([*listed(), Entry("runs/", b"")], {}, "zip-unexpected"),
    "a folder by mode": (listed(central={"attributes": 0x10}), {}, "zip-unexpected"),
    "an absolute path": ([*listed(), Entry("/etc/passwd", b"x")], {}, "zip-unexpected"),
    "a drive": ([*listed(), Entry("C:/x.toml", b"x")], {}, "zip-unexpected"),
    "a traversal": ([*listed(), Entry("runs/../../etc/passwd", b"x")], {}, "zip-unexpected"),
    "a backslash": ([*listed(), Entry("runs\\0.toml", b"x")], {}, "zip-unexpected"),
    "a NUL": ([*listed(), Entry("runs/0.toml\0.txt", b"x")], {}, "zip-unexpected"),
    "the same name twice": ([*listed(), Entry(RUN, b"x")], {}, "zip-unexpected"),
    "a nested archive": ([*listed(), Entry("more.tar.gz", b"x")], {}, "zip-unexpected"),
    "a pickle": ([*listed(), Entry("model.pkl", b"\x80\x04.")], {}, "zip-unexpected"),
    "a number with a zero": ([*listed(), Entry("runs/01.toml", b"x")], {}, "zip-unexpected"),
    "a number of another script": (
        [*listed(), Entry("runs/\N{ARABIC-INDIC DIGIT ONE}.toml", b"x")],
        {},
        "zip-unexpected",
    ),
    "a bomb": ([*listed(), Entry(ROWS, bytes(2 << 20), method=8)], {}, "zip-too-large"),
    "a large card": (listed(content=b"#" * (5 << 20)), {}, "zip-too-large"),
}


@pytest.mark.parametrize("what", LIES)
def test_a_zip_that_lies_is_refused_by_name(what):
    entries, options, name = LIES[what]
    assert name in problems_of(written(entries, **options))


def test_a_bomb_that_hides_its_size_unpacks_no_further_than_it_claims(monkeypatch):
    """A deflated gigabyte that says it is 100 bytes long: reading stops within a piece."""
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    block = deflate.compress(bytes(1 << 20)) + deflate.flush(zlib.Z_FULL_FLUSH)  # a block that refers to no other
    packed = block * 1024 + deflate.flush()
    lies = {"size": 100, "packed": len(packed), "method": 8}
    content = written([Entry(ROWS, packed, local=lies, central=lies)])
    pieces: list[bytes] = []
    monkeypatch.setattr(rules, "TemporaryFile", lambda: nullcontext(SimpleNamespace(write=pieces.append)))
    assert problems_of(content) == ["zip-damaged"]
    assert sum(map(len, pieces)) <= 100


def test_entries_that_are_each_small_enough_may_be_too_large_together(monkeypatch):
    monkeypatch.setattr(rules, "SUBMISSION_BYTES", 50)
    assert problems_of(written(listed())) == ["zip-too-large"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not a readable zip: it has 0 bytes"),
        (b"PK\x05\x06" + bytes(18), "submission.toml: is missing"),
        (b"%PDF-1.7" + bytes(100), "not a readable zip: it has 108 bytes without an end"),
    ],
)
def test_files_that_are_no_submission_are_refused(tmp_path, content, complaint):
    (tmp_path / "f.zip").write_bytes(content)
    with pytest.raises(BadSubmission, match=complaint):
        validate_submission(tmp_path / "f.zip")


def test_a_file_that_is_not_there_or_far_too_large_is_not_opened(tmp_path):
    with pytest.raises(BadSubmission, match="does not exist") as refusal:
        validate_submission(tmp_path / "absent.zip")
    assert refusal.value.problems[0].name == "file-missing"
    with (tmp_path / "large.zip").open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(BadSubmission, match="at most 1073741824 are accepted") as refusal:
        validate_submission(tmp_path / "large.zip")
    assert refusal.value.problems[0].name == "file-too-large"


def test_all_strange_entries_are_told_at_once(good, tmp_path):
    content = written([*good.listed(), Entry("../x", b"x"), Entry("model.pkl", b"x"), Entry("runs/7.toml", b"")])
    (tmp_path / "s.zip").write_bytes(content)
    with pytest.raises(BadSubmission, match="^s.zip: 2 problems: ") as refusal:
        validate_submission(tmp_path / "s.zip")
    assert [(item.name, item.file) for item in refusal.value.problems] == [
        ("zip-unexpected", "../x"),
        ("zip-unexpected", "model.pkl"),
    ]
    (tmp_path / "s.zip").write_bytes(written([*good.listed(), Entry("runs/7.toml", b"")]))
    with pytest.raises(BadSubmission, match="runs/7.toml: not listed in submission.toml"):
        validate_submission(tmp_path / "s.zip")


def test_a_file_that_changes_while_it_is_read_is_refused(good, tmp_path, monkeypatch):
    import os

    file = tmp_path / "s.zip"
    file.write_bytes(good.packed())
    digest = Archive.digest

    def touched(self):
        os.utime(file, ns=(1, 1))
        return digest(self)

    monkeypatch.setattr(Archive, "digest", touched)
    with pytest.raises(BadSubmission, match="was changed while it was read") as refusal:
        validate_submission(file)
    assert refusal.value.problems[0].name == "file-changed"


def test_an_entry_that_is_cut_off_while_it_is_read_is_named(good):
    problems = Problems()
    file = io.BytesIO(good.packed())
    archive = Archive(file, "s.zip", problems)
    file.truncate(archive.members[ROWS].header_offset + 70)
    with pytest.raises(FileRejected, match="cannot be unpacked"), archive.unpack(ROWS):
        pass


def test_names_with_control_characters_are_shown_as_one_line():
    raw = struct.pack("<3s", b"\x1b[2") + b"\r\nfarshift: all is well"
    problems = Problems()
    Archive(io.BytesIO(written([Entry(raw.decode(), b"x")])), "s.zip", problems)
    assert [item.name for item in problems.items] == ["zip-unexpected"]
    assert str(problems.items[0]).isprintable()
