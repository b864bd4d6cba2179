"""Patterns of files: one notation, whatever the files are in, and names of files before patterns."""

from __future__ import annotations

import pytest
from encoded_files import folder, picture, tarred, zipped
from farshift import FarshiftError
from farshift.core.errors import BadDefinition, Unavailable
from farshift.core.progress import report_to
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.files.patterns import PathPattern, choose_paths, expand_numbers, find_files, select_paths
from farshift.loaders.readers import image_folder, table
from farshift.loaders.stream.sources import resolve_location
from own_source import pin_source
from support import Heard

FILES = {
    "a-000.csv", "a-001.csv", "a-010.csv", "b.csv", "export[1].csv", "export1.csv", "x{0..1}.csv", "x0.csv", "x1.csv",
    "deep/a-000.csv", "deep/er/a-000.csv", "runs[1]/a.csv", "runs1/a.csv", "mé/ü.csv", ".hidden.csv",
    ".ipynb_checkpoints/b.csv", "deep/._a-000.csv",
}  # fmt: skip
FITTING = {
    "b.csv": ["b.csv"],
    "a-{000..001}.csv": ["a-000.csv", "a-001.csv"],
    "a-{00..01}?.csv": ["a-000.csv", "a-001.csv", "a-010.csv"],
    "a-{0..1}*.csv": None,
    "a-0{00..01}.csv": ["a-000.csv", "a-001.csv"],
    "a-??0.csv": ["a-000.csv", "a-010.csv"],
    "a-[!0]*.csv": None,
    "a-0[01]0.csv": ["a-000.csv", "a-010.csv"],
    "export[1].csv": ["export[1].csv"],
    "export[12].csv": ["export1.csv"],
    "export[[]1].csv": ["export[1].csv"],
    "x{0..1}.csv": ["x{0..1}.csv"],
    "runs[1]/*.csv": ["runs[1]/a.csv"],
    "*/a-000.csv": ["deep/a-000.csv"],
    "**/a-000.csv": ["a-000.csv", "deep/a-000.csv", "deep/er/a-000.csv"],
    "deep/**": ["deep/a-000.csv", "deep/er/a-000.csv"],
    "m?/*": ["mé/ü.csv"],
    "*b.csv": ["b.csv"],
    ".*.csv": [".hidden.csv"],
    ".hidden.csv": [".hidden.csv"],
    "a-{000..002}.csv": None,
    "absent-*.csv": None,
}


@pytest.mark.parametrize("pattern", FITTING)
def test_a_pattern_names_the_same_files_on_a_disk_and_in_a_list(tmp_path, pattern):
    folder(tmp_path, dict.fromkeys(FILES, b""))
    expected = FITTING[pattern]
    if expected is None:
        with pytest.raises(Unavailable, match="no file"):
            find_files(pattern, tmp_path)
        with pytest.raises(Unavailable, match="no file"):
            select_paths(FILES, pattern)
        return
    assert [path.relative_to(tmp_path).as_posix() for path in find_files(pattern, tmp_path)] == expected
    assert select_paths(FILES, pattern) == expected


def test_numbers_have_the_digits_that_they_are_written_with():
    assert expand_numbers("s{8..11}") == ["s8", "s9", "s10", "s11"]
    assert expand_numbers("s{08..11}") == ["s08", "s09", "s10", "s11"]
    assert expand_numbers("{0..1}/{0..1}") == ["0/0", "0/1", "1/0", "1/1"]
    assert expand_numbers("{a}{0..}{..1}") == ["{a}{0..}{..1}"]
    for none in ("s{3..1}", "s{0..999999999}", "{0..999}/{0..999}"):
        with pytest.raises(BadDefinition, match=r"write the lower number first|more than 100,000 files"):
            expand_numbers(none)


def test_a_missing_number_is_named(tmp_path):
    folder(tmp_path, dict.fromkeys(FILES, b""))
    for files in (lambda text: find_files(text, tmp_path), lambda text: select_paths(FILES, text)):
        with pytest.raises(Unavailable, match=r"no file .*a-002\.csv"):
            files("a-{000..003}.csv")


def test_hidden_files_that_a_wildcard_fits_are_left_out_and_counted(tmp_path):
    folder(tmp_path, dict.fromkeys(FILES, b""))
    heard = Heard()
    with report_to(heard):
        assert len(find_files("**/*.csv", tmp_path)) == 14
    assert heard.lines == ["**/*.csv: 3 hidden files are ignored, such as .hidden.csv"]


def test_what_is_no_pattern_of_files_says_what_to_write(tmp_path):
    for text, message in (("**.csv", r"as in \*\*/\*\.csv"), (".", "a folder"), ("a\0b", "control characters")):
        with pytest.raises(BadDefinition, match=message):
            find_files(text, tmp_path)
    with pytest.raises(BadDefinition, match="bad character range"):
        find_files("[z-a].csv", tmp_path)


CHOSEN = {
    "*.csv": FILES,
    "b.csv": {"b.csv", ".ipynb_checkpoints/b.csv"},
    "deep": {"deep/a-000.csv", "deep/er/a-000.csv", "deep/._a-000.csv"},
    "deep/*": {"deep/a-000.csv", "deep/er/a-000.csv", "deep/._a-000.csv"},
    "deep/*.csv": {"deep/a-000.csv", "deep/._a-000.csv"},
    "er": {"deep/er/a-000.csv"},
    "deep/er/": {"deep/er/a-000.csv"},
    "/b.csv": {"b.csv"},
    "a-{000..001}.csv": {"a-000.csv", "a-001.csv", "deep/a-000.csv", "deep/er/a-000.csv"},
    "export[1].csv": {"export[1].csv"},
    "runs[1]/a.csv": {"runs[1]/a.csv"},
    "runs?": {"runs1/a.csv"},
    "nothing": set(),
}


@pytest.mark.parametrize("pattern", CHOSEN)
def test_files_are_chosen_by_name_at_any_depth_by_path_or_by_their_folder(pattern):
    assert choose_paths(sorted(FILES), [pattern]) == CHOSEN[pattern]
    assert choose_paths(sorted(FILES), [pattern, "b.csv"]) == CHOSEN[pattern] | CHOSEN["b.csv"]


def test_numbers_that_choose_nothing_are_told():
    absent: list[str] = []
    choose_paths(sorted(FILES), ["a-{000..002}.csv", "*.txt", "b.csv"], absent)
    assert absent == ["a-002.csv", "*.txt"]


def test_named_parts_and_wildcards_stand_in_one_pattern():
    pattern = PathPattern("**/{kind}-[0-9]/?{number}_{000..002}.*/{file}")
    assert pattern.fits("a/b/cat-1/x7_001.d/e/f.png") == {"kind": "cat", "number": "7", "file": "e/f.png"}
    assert pattern.fits("cat-1/x7_003.d/f.png") is None
    with pytest.raises(BadDefinition, match="a part without a name, which rows cannot fill"):
        pattern.filled({})
    assert PathPattern("{a:[0-9]+}/{b}.npy").filled({"a": "1", "b": "x"}) == "1/x.npy"


CSV = b"x,y,site\n" + b"".join(b"t%d,%d,%s\n" % (row, row % 2, b"AB"[row % 2 : row % 2 + 1]) for row in range(12))


def pinned(home, **data) -> list[str]:
    source = pin_source(Data(labels=["y"], meta=["site"], **data), "mine", home, home)
    distribution = source.definition.distributions[0]
    return [pin.name for pin in [*distribution.files, *distribution.trees]]


@pytest.mark.usefixtures("cache")
def test_a_draft_names_its_files_by_numbers_and_by_folders(tmp_path):
    head, body = CSV.split(b"\n", 1)
    folder(tmp_path, {f"in/{number}/s-{number:02}.csv": head + b"\n" + body for number in range(3)})
    assert pinned(tmp_path, files=["in/**/s-{00..01}.csv"], inputs=["x"]) == ["s-00.csv", "s-01.csv"]
    with pytest.raises(Unavailable, match=r"\[data\] no file .*s-03\.csv"):
        pinned(tmp_path, files=["in/*/s-{00..03}.csv"], inputs=["x"])


PICTURES = {
    f"{site}/{kind}/{n}.png": picture(n + 9 * ord(kind), "PNG", 4) for site in "AB" for kind in "cd" for n in (1, 2)
}


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("which", ["pictures[1]", "p-{0..1}.zip", "p-*.tar"])
def test_pictures_lie_in_a_folder_or_in_archives_that_a_pattern_names(tmp_path, which):
    folder(tmp_path / "pictures[1]", PICTURES)
    for number, site in enumerate("AB"):
        some = {path: content for path, content in PICTURES.items() if path.startswith(site)}
        zipped(tmp_path / f"p-{number}.zip", some)
        tarred(tmp_path / f"p-{number}.tar", some)
    data = {"images": f"{which}/{{site}}/{{y}}/{{file}}", "inputs": ["image"]}
    assert len(pinned(tmp_path, **data)) == (1 if which == "pictures[1]" else 2)
    assert pin_source(Data(labels=["y"], meta=["site"], **data), "mine", tmp_path, tmp_path).definition.rows == 8
    with pytest.raises(Unavailable, match=r"\[data\] no file .*p-2\.zip"):
        pinned(tmp_path, images="p-{0..2}.zip/{site}/{y}/{file}", inputs=["image"])


def test_members_and_ignored_files_are_chosen_alike_in_folders_and_archives(tmp_path):
    tables = {"set/t-0.csv": CSV, "set/t-1.csv": CSV, "set/notes[1].csv": b"a\n1\n", "set/.t-0.csv": b"?"}
    path = zipped(tmp_path / "a.zip", tables)
    assert table.read_table({"a.zip": path}, members="t-{0..1}.csv").num_rows == 24
    assert table.read_table({"a.zip": path}, members=["set/t*"]).num_rows == 24
    assert table.read_table({"a.zip": path}, members="notes[1].csv").num_rows == 1
    with pytest.raises(FarshiftError, match=r"a\.zip has no file t-2\.csv \(it has "):
        table.read_table({"a.zip": path}, members="t-{0..2}.csv")
    path = zipped(
        tmp_path / "p.zip", PICTURES | {"A/c/list.txt": b"", "E/x/1.png": picture(1, "PNG", 4), "e[1].txt": b""}
    )
    parts = image_folder.list_parts(
        {"p.zip": path}, "image", pattern="{site}/{y}/{file}", ignore=["list.txt", "E", "e[1].txt"]
    )
    assert len(parts) == 8


def test_a_stream_reads_numbered_files_of_a_folder_and_says_that_the_web_has_no_lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder(
        tmp_path, {**{f"d/s-{n:03}.parquet": b"x" for n in range(12)}, "d/._s-000.parquet": b"x", "r/q.parquet": b"x"}
    )
    assert [file.name for file in resolve_location("d/s-{000..011}.parquet")] == [
        f"d/s-{n:03}.parquet" for n in range(12)
    ]
    assert len(resolve_location("d")) == 12
    assert [file.name for file in resolve_location(str(tmp_path / "**" / "q.parquet"))] == [
        str(tmp_path / "r/q.parquet")
    ]
    with pytest.raises(FarshiftError, match=r"no file d/s-012\.parquet"):
        resolve_location("d/s-{010..012}.parquet")
    with pytest.raises(
        FarshiftError, match=r"files on a web server cannot be listed: give their numbers, as in rows-\{000"
    ):
        resolve_location("https://localhost/d/*.parquet")
