"""Probes that say whether a model may have seen the test: what a card declares, duplicates, canaries."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError
from farshift.benchmarks.benchmark import find_benchmark, load_benchmarks, make_canary, make_guid
from farshift.core.errors import BadData
from farshift.leaderboard import contamination
from farshift.leaderboard.contamination import describe_record, is_finding, list_declared_overlaps, probe
from farshift.leaderboard.validation.card import ModelCard

ON = "prefix_sums/32_to_64"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return find_benchmark(ON).view("ood")[0].numpy(["bits"])["bits"].tolist()


@pytest.mark.parametrize(
    ("on", "name", "overlap", "words"),
    [
        (ON, "prefix_sums", "source", "which contains the split's test rows"),
        (ON, "Prefix Sums", "source", "which contains the split's test rows"),
        (ON, "prefix_sums/32_to_64", "training", "what every entry may train on"),
        (ON, "prefix_sums/32_to_64@1", "training", "what every entry may train on"),
        (ON, "The Pile", "none", "not a source or split"),
        (ON, "unknown", "unknown", "the card does not name it"),
        (ON, "scan/length", "none", "scan"),
        ("scan/length", "scan/addprim_jump", "test", "of 5619 test rows"),
        ("addition/length", "parity", "none", "not a source or split"),
        ("digit_product/length", "digit_product_trace", "related", "the same generator and seed"),
    ],
)
def test_declared_data_are_held_against_where_the_test_rows_lie(on, name, overlap, words):
    card = ModelCard(training_data=[], pretraining=[name])
    (record,) = list_declared_overlaps(card, find_benchmark(on))
    assert (record["overlap"], record["field"]) == (overlap, "pretraining")
    assert words in record["why"]
    assert json.loads(json.dumps(record)) == record


def test_every_benchmark_has_a_canary_of_its_own():
    names = [ON, "scan/length", "addition/length", "mazes/9_to_21"]
    result = {make_canary(load_benchmarks()[name]) for name in names}
    assert len(result) == len(names)
    assert all(re.search(r" [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", text) for text in result)


@pytest.mark.parametrize("form", [str, str.upper, lambda text: text.replace("-", "")])
def test_a_canary_is_found_in_texts_however_it_is_written(form, tmp_path):
    canary = form(make_guid(find_benchmark(ON)))
    (tmp_path / "a.txt").write_text(f"nothing here\nbefore {canary} after\nnor here\n")
    record, duplicates = probe(ON, tmp_path)
    assert record == {"probe": "canary in texts", "benchmark": ON, "texts": 3, "found": 1}
    assert is_finding(record)
    assert not is_finding(duplicates)


class Parrot:
    """Continues what it has read, and keeps what it was asked."""

    def __init__(self, corpus: str) -> None:
        self.corpus = corpus

    def predict(self, batch):
        (self.asked,) = batch["bits"].tolist()
        position = self.corpus.find(self.asked[-20:])
        return [self.corpus[position + 20 : position + 60] if position >= 0 else "0 1 0 1"]


def test_a_model_that_read_the_canary_continues_it_and_another_does_not():
    """Nor is it shown what it is asked for."""
    benchmark = find_benchmark(ON)
    read, other = Parrot(f"a page with {make_canary(benchmark)} on it"), Parrot("a page without")
    assert contamination.probe_continuation(benchmark, read)["continued"]
    assert not contamination.probe_continuation(benchmark, other)["continued"]
    assert make_guid(benchmark)[:18] in other.asked
    assert make_guid(benchmark)[19:] not in other.asked


def test_exact_duplicates_are_found_in_lines_json_and_parquet(texts, tmp_path, monkeypatch):
    """Also where a corpus is read in pieces."""
    monkeypatch.setattr(contamination, "PIECE", 4)
    (tmp_path / "a.txt").write_text("\n".join(["other", *texts[:3]]))
    (tmp_path / "b.jsonl").write_text(json.dumps({"deep": [{"text": f"  {texts[3]} "}]}) + "\n")
    pq.write_table(pa.table({"anything": texts[4:6], "number": [1, 2]}), tmp_path / "c.parquet")
    record = probe(ON, tmp_path)[1]
    assert record["texts"] == 7
    assert (record["views"]["ood"]["exact"], record["views"]["id"]["exact"]) == (6, 0)
    ids = {f"{row:016x}" for row in find_benchmark(ON).view("ood")[0].row_ids[:6]}
    assert set(record["views"]["ood"]["first"]) <= ids


def test_near_duplicates_are_found_and_the_benchmarks_own_likeness_is_told(tmp_path):
    rows = find_benchmark("gcog/productive").view("ood")[0].numpy(["question"])["question"].tolist()
    (tmp_path / "a.txt").write_text("\n".join(f"{text} indeed" for text in rows[:20]))
    view = probe("gcog/productive", tmp_path)[1]["views"]["ood"]
    assert (view["exact"], view["near"], view["near_own_training"]) == (0, 20, 0)


@pytest.mark.parametrize(
    ("on", "name", "content", "why"),
    [
        (ON, "a.jsonl", b"{not json\n", "line 1: not JSON"),
        (ON, "a.parquet", b"PAR1 and no more", "cannot be read"),
        (ON, "a.bin", b"\0", "no texts found"),
        ("slabs_5/shuffled", "a.txt", b"a line\n", "has inputs that are not text"),
    ],
)
def test_data_that_cannot_be_searched_are_named(tmp_path, on, name, content, why):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((BadData, FarshiftError), match=why):
        probe(on, tmp_path)


def test_a_probe_needs_something_to_look_at():
    with pytest.raises(FarshiftError, match="give training texts"):
        probe(ON)
    with pytest.raises(FarshiftError, match="is not a text-to-text task"):
        probe("modadd97/xi35", model=Parrot(""))


def test_a_card_that_says_nothing_is_neither_found_nor_fine(tmp_path):
    (tmp_path / "card.toml").write_text('[model]\ntraining_data = ["prefix_sums"]\npretraining = ["unknown"]\n')
    records = probe(ON, card=tmp_path / "card.toml")
    assert [describe_record(record).split()[0] for record in records] == ["FOUND", "?"]
    assert "pretraining: the card does not name it" in describe_record(records[1])
    assert [is_finding(record) for record in records] == [True, False]


def test_the_command_exits_with_1_where_something_is_found(command, tmp_path, texts):
    (tmp_path / "dirty.txt").write_text(texts[0])
    done = command("board", "probe", "--on", ON, "--data", tmp_path / "dirty.txt")
    assert done.returncode == 1, done.stderr
    assert "1 exact" in done.stdout
    (tmp_path / "clean.txt").write_text("nothing of it\n")
    clean = command("board", "probe", "--on", ON, "--data", tmp_path / "clean.txt", "--json")
    assert clean.returncode == 0, clean.stderr
    assert [record["probe"] for record in json.loads(clean.stdout)] == ["canary in texts", "duplicates"]
