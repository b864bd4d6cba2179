"""Probes that say whether a model may have seen the test: what a card declares, duplicates, canaries."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError
from farshift.benchmarks.benchmark import find_benchmark, load_benchmarks, make_canary, make_guid
from farshift.core.errors import BadData
from farshift.leaderboard.contamination import probing as corpus_module
from farshift.leaderboard.contamination.probing import (
    count_duplicate_rows,
    describe_record,
    has_findings,
    iterate_pieces,
    list_declared_overlaps,
    list_text_files,
    probe,
    probe_continuation,
    search_texts,
)
from farshift.leaderboard.validation.card import ModelCard

ON = "prefix_sums/32_to_64"


@pytest.fixture(scope="module")
def benchmark():
    return find_benchmark(ON)


@pytest.fixture(scope="module")
def asked_texts(benchmark) -> list[str]:
    return benchmark.view("ood")[0].numpy(["bits"])["bits"].tolist()


def one(benchmark, name: str, field: str = "training_data"):
    card = ModelCard(**({"training_data": (), "pretraining": ()} | {field: (name,)}))
    (record,) = list_declared_overlaps(card, benchmark)
    return record


@pytest.mark.parametrize(
    ("name", "overlap", "words"),
    [
        ("prefix_sums", "source", "which contains the split's test rows"),
        ("Prefix Sums", "source", "which contains the split's test rows"),
        ("prefix_sums/32_to_64", "training", "what every entry may train on"),
        ("prefix_sums/32_to_64@1", "training", "what every entry may train on"),
        ("The Pile", "none", "not a source or split"),
        ("unknown", "unknown", "the card does not name it"),
        ("scan/length", "none", "scan"),
    ],
)
def test_declared_data_are_held_against_where_the_test_rows_lie(benchmark, name, overlap, words):
    record = one(benchmark, name)
    assert record["overlap"] == overlap
    assert words in record["why"]
    assert json.loads(json.dumps(record)) == record


def test_the_training_rows_of_another_split_are_counted():
    record = one(find_benchmark("scan/length"), "scan/addprim_jump", "pretraining")
    assert record["overlap"] == "test"
    assert 0 < record["rows"] <= 3920
    assert f"{record['rows']} of" in record["why"]
    assert record["field"] == "pretraining"


def test_sources_drawn_by_one_seed_are_related():
    assert one(find_benchmark("addition/length"), "parity")["overlap"] == "none"
    record = one(find_benchmark("digit_product/length"), "digit_product_trace")
    assert record["overlap"] == "related"
    assert "the same generator and seed" in record["why"]


def test_every_benchmark_has_a_canary_of_its_own():
    names = ["prefix_sums/32_to_64", "scan/length", "addition/length", "mazes/9_to_21"]
    result = {make_canary(load_benchmarks()[name]) for name in names}
    assert len(result) == len(names)
    assert all(re.search(r" [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", text) for text in result)


@pytest.mark.parametrize("form", [str, str.upper, lambda text: text.replace("-", "")])
def test_a_canary_is_found_in_texts_however_it_is_written(benchmark, form):
    texts = ["nothing here", f"before {form(make_guid(benchmark))} after", "nor here"]
    assert search_texts(benchmark, texts) == {
        "probe": "canary in texts", "benchmark": ON, "texts": 3, "found": 1, "first": 1,
    }  # fmt: skip
    assert search_texts(benchmark, texts[:1])["found"] == 0


class Parrot:
    """Continues what it has read."""

    def __init__(self, corpus: str) -> None:
        self.corpus = corpus

    def predict(self, batch):
        (requested,) = batch["bits"].tolist()
        position = self.corpus.find(requested[-20:])
        return [self.corpus[position + 20 : position + 60] if position >= 0 else "0 1 0 1"]


def test_a_model_that_read_the_canary_continues_it_and_another_does_not(benchmark):
    schema = benchmark.split.source.schema
    assert probe_continuation(benchmark, schema, Parrot(f"a page with {make_canary(benchmark)} on it"))["continued"]
    assert not probe_continuation(benchmark, schema, Parrot("a page without"))["continued"]


def test_the_model_is_not_shown_what_it_is_asked_for(benchmark):
    class Noting:
        def predict(self, batch):
            self.asked = batch["bits"].tolist()[0]
            return [""]

    model = Noting()
    probe_continuation(benchmark, benchmark.split.source.schema, model)
    assert make_guid(benchmark)[:18] in model.asked
    assert make_guid(benchmark)[19:] not in model.asked


def test_a_benchmark_that_does_not_answer_texts_is_not_asked_for_its_canary():
    other = find_benchmark("modadd97/xi35")
    with pytest.raises(FarshiftError, match="is not a text-to-text task"):
        probe_continuation(other, other.split.source.schema, Parrot(""))


def test_exact_duplicates_are_found_in_lines_json_and_parquet(benchmark, asked_texts, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(["other", *asked_texts[:3]]))
    (tmp_path / "b.jsonl").write_text(json.dumps({"deep": [{"text": f"  {asked_texts[3]} "}]}) + "\n")
    pq.write_table(pa.table({"anything": asked_texts[4:6]}), tmp_path / "c.parquet")
    record = count_duplicate_rows(list_text_files(tmp_path), benchmark)
    assert record["views"]["ood"]["exact"] == 6
    assert record["views"]["id"]["exact"] == 0
    ids = {f"{row:016x}" for row in benchmark.view("ood")[0].row_ids[:6]}
    assert set(record["views"]["ood"]["first"]) <= ids
    assert record["texts"] == 7


def test_inputs_in_columns_of_their_names_are_found_by_row_id(tmp_path):
    digits = find_benchmark("slabs_5/shuffled")
    part = digits.view("ood")[0]
    table = part.select(np.arange(7)).arrow(["inputs"])
    pq.write_table(table, tmp_path / "mine.parquet")
    record = count_duplicate_rows(list_text_files(tmp_path / "mine.parquet"), digits)
    assert (record["rows"], record["views"]["ood"]["exact"], record["views"]["id"]["exact"]) == (7, 7, 0)


def test_a_benchmark_of_numbers_needs_columns(tmp_path):
    (tmp_path / "a.txt").write_text("a line\n")
    with pytest.raises(FarshiftError, match="give Parquet with its inputs as columns"):
        count_duplicate_rows(list_text_files(tmp_path / "a.txt"), find_benchmark("slabs_5/shuffled"))


def test_near_duplicates_are_found_and_the_benchmarks_own_likeness_is_told(tmp_path):
    questions = find_benchmark("gcog/productive")
    rows = questions.view("ood")[0].numpy(["question"])["question"].tolist()
    (tmp_path / "a.txt").write_text("\n".join(f"{text} indeed" for text in rows[:20]))
    view = count_duplicate_rows(list_text_files(tmp_path), questions)["views"]["ood"]
    assert (view["exact"], view["near"]) == (0, 20)
    assert view["near_own_training"] == 0


def test_a_corpus_is_read_in_pieces(benchmark, asked_texts, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "PIECE", 4)
    (tmp_path / "a.txt").write_text("\n".join([*map(str, range(9)), asked_texts[0]]))
    result = list_text_files(tmp_path)
    assert [len(piece) for piece in iterate_pieces(result)] == [4, 4, 2]
    assert count_duplicate_rows(result, benchmark)["views"]["ood"]["exact"] == 1


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [("a.jsonl", b"{not json\n", "line 1: not JSON"), ("a.parquet", b"PAR1 and no more", "cannot be read")],
)
def test_files_that_cannot_be_read_are_named(tmp_path, name, content, why, benchmark):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadData, match=why):
        count_duplicate_rows(list_text_files(tmp_path), benchmark)


def test_a_folder_without_texts_is_refused(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\0")
    with pytest.raises(FarshiftError, match="no texts found"):
        list_text_files(tmp_path)


def test_probe_runs_all_that_it_is_given_and_says_what_it_found(tmp_path, asked_texts):
    with pytest.raises(FarshiftError, match="give training texts"):
        probe(ON)
    (tmp_path / "clean.txt").write_text("nothing of it\n")
    (tmp_path / "dirty.txt").write_text(asked_texts[0])
    (tmp_path / "card.toml").write_text('[model]\ntraining_data = ["prefix_sums"]\npretraining = []\n')
    clean = probe(ON, tmp_path / "clean.txt")
    assert [record["probe"] for record in clean] == ["canary in texts", "duplicates"]
    assert not has_findings(clean)
    assert has_findings(probe(ON, tmp_path / "dirty.txt"))
    (record,) = probe(ON, card=tmp_path / "card.toml")
    assert describe_record(record).startswith("FOUND")
    assert has_findings([record])
    assert not has_findings(probe(ON, model=Parrot("")))


def test_a_card_that_says_nothing_is_neither_found_nor_fine(tmp_path):
    (tmp_path / "card.toml").write_text('[model]\ntraining_data = []\npretraining = ["unknown"]\n')
    records = probe(ON, card=tmp_path / "card.toml")
    assert [describe_record(record).split()[0] for record in records] == ["?"]
    assert "pretraining: the card does not name it" in describe_record(records[0])
    assert not has_findings(records)


def test_the_command_exits_with_1_where_something_is_found(command, tmp_path, asked_texts):
    (tmp_path / "dirty.txt").write_text(asked_texts[0])
    done = command("board", "probe", "--on", ON, "--data", tmp_path / "dirty.txt")
    assert done.returncode == 1, done.stderr
    assert "1 exact" in done.stdout
    (tmp_path / "clean.txt").write_text("nothing of it\n")
    clean = command("board", "probe", "--on", ON, "--data", tmp_path / "clean.txt", "--json")
    assert clean.returncode == 0, clean.stderr
    records = json.loads(clean.stdout)
    assert [record["probe"] for record in records] == ["canary in texts", "duplicates"]
