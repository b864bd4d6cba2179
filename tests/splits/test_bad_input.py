"""Bad input: whatever is wrong with data, rules and definitions ends in one line, and leaves nothing half-written."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift.core.errors import BadDefinition
from farshift.core.files import get_cache_root
from farshift.core.plugins import load_function
from farshift.loaders.freezing.freeze import freeze_draft, read_drafts
from farshift.splits import catalogue, rows
from farshift.splits.assignment import Assignment
from farshift.splits.manifest import check_parameters
from farshift.splits.schema import Field
from support import Command, one_line_error

ROWS = 60
DRAFT = """
name = "mine/split"
version = 1
kind = "{kind}"
title = "a test"
label = "topic"
rule = "{rule}"
source = {{ name = "mine" }}
parameters = {parameters}
data = {{ files = ["rows.parquet"], inputs = ["text"], labels = ["topic"], meta = ["hardness"] }}
"""
SHORT = '{ field = "text", at_most = 10 }'
EASY = '{{ field = "hardness", easy_at_most = {0}, id_test = {1}, seed = "a" }}'


def table(**columns: pa.Array) -> pa.Table:
    """Texts of 1 to 20 words, five topics, hardness 0 to 10; some columns are others."""
    numbers = range(ROWS)
    usual = {
        "text": pa.array([" ".join(f"w{number * 7 + word}" for word in range(1 + number % 20)) for number in numbers]),
        "topic": pa.array([number % 5 for number in numbers]),
        "hardness": pa.array([float(number % 11) for number in numbers]),
    }
    return pa.table(usual | columns)


def draft(kind: str = "length", rule: str = "length/threshold", parameters: str = SHORT) -> str:
    return DRAFT.format(kind=kind, rule=rule, parameters=parameters)


@pytest.fixture
def home(tmp_path: Path, cache: Path) -> Path:
    """A folder with good data and a good draft."""
    pq.write_table(table(), tmp_path / "rows.parquet")
    (tmp_path / "split.toml").write_text(draft())
    return tmp_path


@pytest.fixture
def build(home: Path, command: Command) -> Command:
    return lambda: command("splits", "build", home / "split.toml", "--out", home / "splits/manifests")


def manifests(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "splits/manifests").rglob("*") if path.is_file())


def unfinished() -> list[str]:
    """Temporary files that a build left in the cache."""
    return sorted(path.name for path in get_cache_root().rglob("*") if ".tmp" in path.name or path.name.startswith("."))


def with_value(value: float) -> pa.Array:
    return pa.array([value if row == 3 else 1.0 for row in range(ROWS)])


def not_utf8() -> pa.Array:
    """A text column, one of whose values is none; as a careless writer stores it."""
    bytes_ = pa.array([b"caf\xe9" if row == 3 else f"text {row}".encode() for row in range(ROWS)])
    return pa.Array.from_buffers(pa.string(), ROWS, bytes_.buffers())


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (table(hardness=with_value(float("nan"))), "row 4: hardness is missing: set `if_missing`"),
        (table(hardness=with_value(float("-inf"))), "field 'hardness' contains NaN or infinity"),
        (
            table(text=pa.array([None if row == 3 else f"{row}" for row in range(ROWS)])),
            "row 4: text is missing: set `if_missing`",
        ),
        (
            table(topic=pa.array([None if row == 3 else row for row in range(ROWS)])),
            "row 4: topic is missing: set `if_missing`",
        ),
        (table(topic=pa.nulls(ROWS)), "column 'topic' has no values: remove 'topic'"),
        (table(text=not_utf8()), "field 'text' is not UTF-8: re-encode it, or store it as binary"),
        (table(topic=not_utf8()), "field 'topic' is not UTF-8: re-encode it, or store it as binary"),
        (table().slice(0, 0), "[data] rows.parquet has no rows"),
        (table().drop_columns(["hardness"]), "rows.parquet has no column 'hardness' (it has text, topic)"),
    ],
)
def test_data_that_cannot_be_a_source_are_refused_and_once_mended_build(home, build, data, complaint):
    pq.write_table(data, home / "rows.parquet")
    assert complaint in one_line_error(build())
    assert not (home / "loaders").exists()
    assert manifests(home) == unfinished() == []
    pq.write_table(table(), home / "rows.parquet")
    done = build()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.9, 0.999, 1])
def test_a_parquet_file_that_was_cut_off_or_damaged_inside_is_no_source(home, build, kept):
    path = home / "rows.parquet"
    content = path.read_bytes()
    damaged = content[:200] + bytes(100) + content[300:] if kept == 1 else content[: int(kept * len(content))]
    path.write_bytes(damaged)
    complaint = "rows.parquet cannot be read, or is cut off: " if kept == 1 else "not a readable Parquet file: "
    assert complaint in one_line_error(build())
    assert not (home / "loaders").exists()
    assert manifests(home) == unfinished() == []


class FewDigests:
    """sha256, but the first eight bytes, which make an id, have 256 values only."""

    def __init__(self, data: bytes) -> None:
        self._true = sha256(data)

    def digest(self) -> bytes:
        true = self._true.digest()
        return bytes(7) + true[:1] + true[8:]

    def hexdigest(self) -> str:
        return self._true.hexdigest()


def test_two_rows_whose_ids_collide_are_refused_and_named(home, build, monkeypatch):
    monkeypatch.setattr(rows, "sha256", FewDigests)
    error = one_line_error(build())
    named = re.search(r"have the same 64-bit row id, 0{14}(..): rows (\d+) and (\d+) in the order", error)
    texts = rows.iterate_canonical_rows(table(), (Field("text", "string", "input"),))
    first_of_its_inputs = bytes(8)
    ids = [FewDigests(bytes(text) + first_of_its_inputs).digest()[7] for text in texts]
    assert [ids[int(position)] for position in named.groups()[1:]] == [int(named[1], 16)] * 2
    assert named[2] != named[3]
    assert not (home / "loaders").exists()
    assert unfinished() == []


@pytest.mark.parametrize(
    ("kind", "rule", "parameters", "complaint"),
    [
        ("length", "length/threshold", SHORT.replace("text", "txt"), "no field named 'txt': did you mean text?"),
        ("length", "length/threshold", SHORT.replace("text", "topic"), "'topic' is int64, and the rule needs text"),
        ("length", "length/threshold", SHORT.replace("10", "0"), "the rule assigns no row to train (parts: ood_test)"),
        ("length", "length/threshold", SHORT.replace("10", "20"), "assigns no row to ood_test (parts: train)"),
        ("easy-to-hard", "easy_to_hard/threshold", EASY.format(10, 5), "no row to ood_test (parts: train, id_test)"),
        ("easy-to-hard", "easy_to_hard/threshold", EASY.format(-1, 5), "only 0 rows have hardness <= -1"),
        ("easy-to-hard", "easy_to_hard/threshold", EASY.format(5, 36), "id_test = 36, but only 35 rows"),
        ("easy-to-hard", "easy_to_hard/threshold", EASY.format(5, -1), "id_test = -1, but only 35 rows"),
        ("easy-to-hard", "grades/drawn", EASY.format("5, hard_at_least = 4", 5), "5 must lie below hard_at_least = 4"),
    ],
)
def test_a_rule_that_cannot_be_applied_says_so_and_a_better_one_goes_on(home, build, kind, rule, parameters, complaint):
    (home / "split.toml").write_text(draft(kind, rule, parameters))
    error = one_line_error(build())
    assert error.startswith("farshift: error: mine/split"), error
    assert complaint in error
    assert manifests(home) == unfinished() == []
    assert not (home / "loaders").exists()
    (home / "split.toml").write_text(draft())
    assert build().returncode == 0


@pytest.mark.parametrize(
    ("kind", "rule", "parameters", "complaint"),
    [
        ("length", "length/threshold", SHORT.replace("10", '"ten"'), "at_most = 'ten', and the rule takes int"),
        (
            "length",
            "length/threshold",
            SHORT.replace("10", "2024-07-01"),
            "at_most = 2024-07-01, and the rule takes int",
        ),
        ("length", "length/threshold", SHORT.replace('"text"', "2024-07-01"), 'in quotes, field = "2024-07-01"'),
        ("length", "length/threshold", SHORT.replace("10", "true"), "at_most = True, and the rule takes int"),
        ("length", "length/threshold", SHORT[:-1] + ", group_words = 'a' }", "the rule takes list[str] | None"),
        ("length", "length/threshold", SHORT.replace("at_most", "most"), "missing a required argument: 'at_most'"),
        ("length", "length/threshold", SHORT.replace(" }", ", x = 1 }"), "unexpected keyword argument 'x'"),
        ("easy-to-hard", "easy_to_hard/threshold", EASY.format(5, 2.5), "id_test = 2.5, and the rule takes int"),
        (
            "domain",
            "domain/hold_out",
            '{ field = "topic", ood = "ab" }',
            "ood = 'ab', and the rule takes list[str | int]",
        ),
        ("length", "length/treshold", SHORT, "no rule named 'length/treshold': did you mean length/threshold?"),
    ],
)
def test_a_rule_that_does_not_take_its_parameters_is_refused_before_the_data_are_read(
    home, build, kind, rule, parameters, complaint
):
    (home / "split.toml").write_text(draft(kind, rule, parameters))
    error = one_line_error(build())
    assert complaint in error
    assert not (home / "loaders").exists()
    assert manifests(home) == unfinished() == []


def test_every_shipped_definition_gives_its_rule_what_the_rule_takes():
    for manifest in catalogue.list_manifests():
        definition = manifest.definition
        given = definition.parameters | ({"files": {}} if definition.files else {})
        rule = load_function("splits/rules", definition.rule, "rule")
        assert check_parameters(rule, given, manifest.full_name) is None


OWN = """
import numpy as np
from farshift.splits.assignment import Assignment

def halves(table, limit=0):
    n = table.num_rows
    part = np.where(np.arange(n) < n // 2, "train", "ood_test")
    later = (part == "ood_test").astype(np.int64)
    BODY
"""


def own_rule(home: Path, body: str) -> Path:
    path = home / "splits/rules/own.py"
    path.parent.mkdir(parents=True)
    path.write_text(OWN.replace("BODY", body))
    return path


def test_a_rule_of_one_s_own_builds(home, build):
    own_rule(home, "return Assignment(part=part, severity=later)")
    (home / "split.toml").write_text(draft(rule="own/halves", parameters="{}"))
    done = build()
    assert done.returncode == 0, done.stderr
    assert "training reaches severity 0, ood_test begins at 1" in done.stdout


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("raise ValueError('in two\\n lines')", "ValueError ({file}:9): in two lines"),
        ("return Assignment(part=table['none'])", "KeyError ({file}:9): "),
        ("return 1 / 0", "ZeroDivisionError ({file}:9): division by zero"),
        ("return part", "gives no Assignment"),
        ("return Assignment(part=np.where(later, 'test', part))", "the rule names parts test: use train, id_val"),
        ("return Assignment(part=np.full(n, ''))", "the rule assigns no row to train (parts: none)"),
        ("return Assignment(part=part[1:])", "the rule gives 59 values of 'part' for 60 rows"),
        ("return Assignment(part=None)", "the rule gives no column of values as 'part'"),
        ("return Assignment(part=part.reshape(2, 30))", "the rule gives no column of values as 'part'"),
        ("return Assignment(part=later)", "the rule gives 'part' as int64: use string"),
        ("return Assignment(part=[None, *part[1:]])", "the rule gives 1 of 60 rows no 'part'"),
        ("return Assignment(part=part, severity=later[1:])", "the rule gives 59 values of 'severity' for 60 rows"),
        ("return Assignment(part=part, severity=1 / later)", "a severity that is NaN or infinite"),
        ("return Assignment(part=part, severity=later / later)", "a severity that is NaN or infinite"),
        ("return Assignment(part=part, severity=part)", "the rule gives 'severity' as string: use int64 or double"),
        ("return Assignment(part=part, severity=later > 0)", "the rule gives 'severity' as bool: use int64 or double"),
        ("return Assignment(part=part, group=part[:, None])", "the rule gives no column of values as 'group'"),
        ("return Assignment(part=part, weight=later)", "the rule gives a weight below 1"),
        ("return Assignment(part=part, weight=later + 0.5)", "the rule gives 'weight' as double: use int64"),
        ("return Assignment(part=part, label=np.ma.array(later[1:]))", "the rule gives 59 values of 'label' for 60"),
        ("return Assignment(part=part, label=np.ma.array(part))", "labels as string, and the field 'topic' is int64"),
        ("return Assignment(part=part, label=np.ma.array(later / 2))", "labels as double, and the field 'topic' is"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_rule_of_one_s_own_that_fails_is_told_in_one_line(home, build, body, complaint):
    file = own_rule(home, body)
    (home / "split.toml").write_text(draft(rule="own/halves", parameters="{}"))
    error = one_line_error(build())
    assert error.startswith("farshift: error: mine/split: "), error
    assert complaint.format(file=file) in error
    assert manifests(home) == unfinished() == []


def test_an_error_without_a_word_is_told_by_its_type():
    class Silent:
        def __arrow_array__(self, type=None):
            raise ValueError

    source = pa.table({"row_id": [1], "check": [1]})
    with pytest.raises(BadDefinition, match="the rule gives no column of values as 'part': ValueError$"):
        Assignment(part=Silent()).table(source)


def test_a_split_without_a_test_is_refused(home, build):
    own_rule(home, "return Assignment(part=np.full(n, 'train'), label=np.ma.array(np.zeros(n, int)))")
    (home / "split.toml").write_text(draft("corrupted-label", "own/halves", "{}"))
    assert "mine/split: the rule assigns no row to a test part (parts: train)" in one_line_error(build())
    (home / "split.toml").write_text(draft(parameters=SHORT.replace("10", "90")))
    assert "mine/split: the rule assigns no row to ood_test (parts: train)" in one_line_error(build())
    assert manifests(home) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('label = "topic"', 'label = "hardness"', "label = 'hardness' is not one of the labels of [data]: topic"),
        ('label = "topic"', 'label = "none"', "label = 'none' is not one of the labels of [data]: topic"),
        ('title = "a test"', 'colour = "red"', "title: Field required; colour: no such key: choose from"),
        ("version = 1", "version = 0", "version: Input should be greater than or equal to 1"),
        (
            'name = "mine/split"',
            'name = "../split"',
            "name = '../split': use lower-case letters, digits and _, as in source/split",
        ),
        ("version = 1", "version = 1\ngroup = 'topic'", "group = 'topic': write a table, { .. }"),
        ("meta =", "metta =", "data.metta: no such key: did you mean meta?"),
        ("parameters = {", "parameters = [", "not valid TOML"),
    ],
)
def test_a_draft_that_does_not_say_what_it_must_is_refused_before_anything_is_written(home, build, old, new, complaint):
    path = home / "split.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    error = one_line_error(build())
    assert str(path) in error
    assert complaint in error
    assert not (home / "loaders").exists()
    assert not (home / "splits").exists()


def test_a_label_of_another_role_is_refused_where_the_source_is_there_already(home, build):
    assert build().returncode == 0
    path = home / "split.toml"
    path.write_text(path.read_text().split("data =")[0].replace("mine/split", "mine/more").replace('"topic"', '"text"'))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(home))
        assert "mine/more: the field 'text' is not a label; labels are: topic" in one_line_error(build())
    assert not (home / "splits/manifests/mine/more").exists()


def test_a_version_that_exists_keeps_every_byte(home, build):
    assert build().returncode == 0
    folder = home / "splits/manifests/mine/split/v1"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (home / "split.toml").write_text(draft(parameters=SHORT.replace("10", "11")))
    error = one_line_error(build())
    assert "mine/split@1 is frozen with other rows" in error
    assert error.endswith(f"set `version` to 2, or delete {folder}")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_members_of_a_family_that_fail_leave_the_others(home, build):
    own_rule(home, "return Assignment(part=part if limit else 1 / 0, severity=later)")
    family = draft(rule="own/halves", parameters='{ limit = "{limit}" }').replace("mine/split", "mine/split_{limit}")
    (home / "split.toml").write_text(f"{family}\n[[vary]]\nlimit = [0, 1, 2]\n")
    done = build()
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if "mine/" in line] == done.stderr.splitlines()[-1:]
    assert "mine/split_0: rule own/halves: ZeroDivisionError" in done.stderr
    assert sorted(path.name for path in (home / "splits/manifests/mine").iterdir()) == ["split_1", "split_2"]
    assert unfinished() == []


def test_a_manifest_whose_source_is_nowhere_is_listed_and_not_opened(home, build, command, monkeypatch):
    assert build().returncode == 0
    (home / "loaders/sources/mine.toml").unlink()
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    assert "no source named 'mine': " in one_line_error(command("splits", "pull", "mine/split"))
    verified = command("splits", "verify", "mine/split", "--json")
    assert verified.returncode == 1
    assert json.loads(verified.stdout)[0]["state"] == "failed"
    assert "mine/split@1" in command("splits", "list", "mine").stdout


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("version = 1", "version = 1\ncolour = 1", "colour: no such key"),
        ("[parts.ood_test]", "[parts.test]", "unknown parts test: use train, id_val, id_test, ood_val, ood_test"),
        ('name = "mine/split"', 'name = "mine/other"', "defines mine/other@1, so its folder must be"),
    ],
)
def test_a_manifest_that_was_written_badly_is_named_with_its_file(
    home, build, command, monkeypatch, old, new, complaint
):
    assert build().returncode == 0
    path = home / "splits/manifests/mine/split/v1/split.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    error = one_line_error(command("splits", "pull", "mine/split"))
    assert str(path) in error
    assert complaint in error


@pytest.mark.slow
def test_a_label_of_a_million_classes_builds_and_its_audit_stays_small(home):
    count = 1_000_000
    numbers = np.arange(count)
    names = pa.array([f"class {number}" for number in range(count)])
    data = {"text": names, "topic": pa.array(numbers), "hardness": pa.array((numbers % 11).astype(float))}
    pq.write_table(pa.table(data), home / "rows.parquet")
    (home / "split.toml").write_text(draft("easy-to-hard", "easy_to_hard/threshold", EASY.format(5, 1000)))
    (only,) = read_drafts(home / "split.toml")
    manifest, audit = freeze_draft(only, home / "split.toml", home / "splits/manifests")
    assert sum(audit["labels"]["distinct"].values()) == count
    assert (manifest.folder / "audit.json").stat().st_size < 20_000
