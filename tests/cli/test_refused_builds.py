"""A build that is refused leaves nothing behind, and one that was killed is completed by the same command."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from farshift import load
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core.files import write_atomically
from farshift.loaders.freezing import freeze
from farshift.splits.catalogue import find_manifest
from support import Command, one_line_error

DRAFT = """
name = "shops/{split}"
version = {version}
kind = "{kind}"
title = "{title}"
label = "stars"
rule = "length/threshold"
parameters = {{ field = "text", at_most = {most} }}
data = {{ files = ["shops.csv"], inputs = ["text"], labels = ["stars"] }}
{benchmark}
"""
PROMPT = """
[benchmark.prompt]
k = {k}
example = "{{text}} {{stars}}"
query = "{{{field}}}"
extraction = {{ name = "whole", version = 1 }}
"""


def shops(home: Path, count: int = 120, turned: int = 0) -> None:
    rows = [f"{'w ' * (row % 20)}{row},{(row + turned) % 3}" for row in range(count)]
    (home / "shops.csv").write_text("\n".join(["text,stars", *rows]) + "\n")


@pytest.fixture
def home(tmp_path, cache, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    shops(tmp_path)
    return tmp_path


def draft(
    home: Path,
    split="long",
    version=1,
    most=10,
    title="Long texts",
    benchmark="benchmark = {}",
    name="draft.toml",
    kind="length",
) -> Path:
    output = DRAFT.format(kind=kind, split=split, version=version, most=most, title=title, benchmark=benchmark)
    (home / name).write_text(output)
    return home / name


def built(command: Command, path: Path) -> str:
    """What a build says that is not refused."""
    done = command("splits", "build", path)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def files(home: Path) -> dict[str, bytes]:
    """What stands in the user's folder beside the data and the drafts."""
    result = (path for position in ("loaders", "splits", "benchmarks") for path in (home / position).rglob("*"))
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in result if path.is_file()}


FILES = [
    "benchmarks/definitions/shops-long.toml",
    "loaders/sources/shops.toml",
    "splits/manifests/shops/long/v1/audit.json",
    "splits/manifests/shops/long/v1/split.toml",
]

REFUSED = {
    "an empty test": ({"most": 90}, "the rule assigns no row to ood_test (parts: train)"),
    "the audit": (
        {"kind": "domain"},
        "does not have the shift that it declares: no groups in train and ood_test; choose a rule that gives each row",
    ),
    "a part of a view": (
        {"benchmark": 'benchmark = { views = { id = { part = "id_tset" }, ood = { part = "ood_test" } } }'},
        "no part named 'id_tset': did you mean id_test",
    ),
    "an input": (
        {"benchmark": 'benchmark = { task = { inputs = ["txt"] } }'},
        "no field named 'txt': did you mean text",
    ),
    "a metric": ({"benchmark": 'benchmark = { metrics = ["rmse"] }'}, "rmse cannot score classification tasks"),
    "a field of a metric": (
        {"benchmark": 'benchmark = { metrics = [{ name = "worst_group_accuracy", version = 1, options = {} }] }'},
        "worst_group_accuracy",
    ),
    "a field of the prompt": (
        {"benchmark": PROMPT.format(k=1, field="txt")},
        "prompt: the query names {txt}, but may only name text",
    ),
    "the examples of the prompt": (
        {"benchmark": PROMPT.format(k=64, field="text"), "most": 7},
        "prompt: 64 examples are requested, and the training part of shops/long has",
    ),
    "a hold-out": (
        {"benchmark": 'benchmark = { holdouts = [{ part = "train", to = "id_test", share = 0.001 }] }'},
        "the part id_test has no rows",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_build_writes_nothing_and_the_corrected_one_goes_on(command, home, what):
    changes, complaint = REFUSED[what]
    assert complaint in one_line_error(command("splits", "build", draft(home, **changes)))
    assert not any((home / position).exists() for position in ("loaders", "splits", "benchmarks"))
    shops(home, 121)
    built(command, draft(home))
    assert sorted(files(home)) == FILES


class Killed(BaseException):
    """In place of kill -9: nothing that the build has written is undone by it."""


def kill_before_write(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [number]

    def write(path: Path, content: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        write_atomically(path, content)

    monkeypatch.setattr(freeze, "write_atomically", write)


@pytest.mark.attack("disk", "kill -9 of a build between any two of its files")
@pytest.mark.parametrize("changed", [False, True], ids=["the same data", "other data"])
def test_a_build_that_is_killed_between_two_writes_is_completed_by_the_same_command(
    command, home, monkeypatch, changed
):
    """Other data are taken too, as long as the split was not frozen."""
    path = draft(home)
    for number in range(len(FILES)):
        shops(home, 120)
        with monkeypatch.context() as patch, pytest.raises(Killed):
            kill_before_write(number, patch)
            command("splits", "build", path)
        written = files(home)
        assert len(written) == number
        frozen = FILES[-1] in written
        shops(home, 120 + changed)
        if changed and frozen:
            error = one_line_error(command("splits", "build", path))
            assert "a split stands on them that is frozen (shops/long@1)" in error
            assert files(home) == written
        else:
            built(command, path)
            assert sorted(files(home)) == FILES
            assert len(load("shops/long", part="ood_test")) + len(load("shops/long")) == 120 + changed
        for file in files(home):
            (home / file).unlink()


def test_a_killed_build_of_shipped_rows_leaves_no_rows_to_one_that_ships_none(command, home, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_before_write(2, patch)
        command("splits", "build", draft(home, benchmark="ships_rows = true"))
    assert "splits/manifests/shops/long/v1/rows.parquet" in files(home)
    built(command, draft(home))
    assert sorted(files(home)) == FILES


def test_a_frozen_version_never_changes_and_the_refusal_says_both_ways_on(command, home, farshift_json):
    built(command, draft(home))
    before, identity = files(home), find_manifest("shops/long@1").identity
    folder = home / "splits/manifests/shops/long/v1"
    shops(home, 130)
    for other in (draft(home), draft(home, "longer", most=12), draft(home, version=2)):
        error = one_line_error(command("splits", "build", other))
        assert "shops.toml pins other data, and a split stands on them that is frozen (shops/long@1)" in error
        assert f"source = {{ name = .. }} and increase `version`, or delete {folder}" in error
        assert files(home) == before
    path = draft(home, version=2)
    path.write_text(path.read_text().replace("data =", 'source = { name = "later_shops" }\ndata ='))
    assert "shops-long.toml: it was built on shops/long@1" in built(command, path)
    assert find_benchmark("shops/long").definition.split == "shops/long@2"
    assert len(load("shops/long@2")) > len(load("shops/long@1"))
    proven = farshift_json("splits", "verify", "shops/long@1", "shops/long@2")
    assert [item["state"] for item in proven] == ["verified"] * 2
    # An older version does not take the benchmark back, and is what it was.
    shops(home, 120)
    assert "is unchanged, on shops/long@2" in built(command, draft(home))
    assert find_manifest("shops/long@1").identity == identity
    for file in folder.iterdir():
        file.unlink()
    shops(home, turned=1)
    assert "it is rewritten" in built(command, draft(home))


def test_other_files_of_the_same_rows_disturb_no_split(command, home):
    built(command, draft(home))
    identity = find_manifest("shops/long").identity
    lines = (home / "shops.csv").read_text().splitlines()
    (home / "shops.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    assert "pins the same rows of other files" in built(command, draft(home))
    assert find_manifest("shops/long").identity == identity


def test_what_was_edited_by_hand_is_not_replaced(command, home):
    built(command, draft(home, benchmark=""))
    source = home / "loaders/sources/shops.toml"
    source.write_text(source.read_text().replace("unknown", "CC0-1.0"))
    assert "gives the same rows: it is not changed" in built(command, draft(home))
    assert tomllib.loads(source.read_text())["licence"] == "CC0-1.0"
    benchmark = home / "benchmarks/definitions/shops-long.toml"
    benchmark.write_text(benchmark.read_text().replace("Long texts", "My title"))
    before = files(home)
    assert "written or edited by hand: delete it" in one_line_error(command("splits", "build", draft(home)))
    for path in (home / "splits/manifests/shops/long/v1").iterdir():
        path.unlink()
    shops(home, 130)
    assert "shops.toml defines 'shops' by other data, and was written or edited by hand" in one_line_error(
        command("splits", "build", draft(home))
    )
    assert {name: content for name, content in before.items() if "/v1/" not in name} == files(home)


def test_another_table_benchmark_replaces_the_file_of_the_one_before(command, home):
    built(command, draft(home))
    assert "replacing " in built(command, draft(home, benchmark='benchmark = { metrics = ["macro_f1"] }'))
    assert [metric.name for metric in find_benchmark("shops/long").metrics] == ["macro_f1"]
