"""WILDS' benchmarks: the official metric first, and scored from a pull of the real layout (made small) to the end."""

from __future__ import annotations

import farshift as fs
import numpy as np
import pytest
import tomli_w
from farshift.benchmarks.benchmark import find_benchmark, load_benchmarks
from twins import csv, gz, laid, npy, picture, pulled, twin, zipped

WILDS = {name: item for name, item in load_benchmarks().items() if name.startswith("wilds_")}

PRIMARY = {
    "wilds_amazon": "group_percentile_accuracy",
    "wilds_camelyon17": "accuracy",
    "wilds_civilcomments": "worst_group_accuracy",
    "wilds_fmow": "worst_group_accuracy",
    "wilds_globalwheat": "domain_detection_accuracy",
    "wilds_iwildcam": "macro_f1_present",
    "wilds_molpcba": "multilabel_average_precision",
    "wilds_poverty": "worst_group_pearson",
    "wilds_py150": "token_type_accuracy",
    "wilds_rxrx1": "accuracy",
}
"""What `examples/evaluate.py` of p-lambda/wilds reads first of each set."""

REPLICATES = {"wilds_camelyon17": 10, "wilds_civilcomments": 5, "wilds_poverty": 1}


@pytest.mark.parametrize("name", sorted(WILDS))
def test_the_official_metric_selection_and_replicates(name):
    benchmark, of = WILDS[name], name.split("/")[0]
    assert benchmark.metrics[0].name == PRIMARY[of]
    protocol = benchmark.definition.protocol
    assert protocol.selection[0] == "ood_val"
    assert protocol.seeds == REPLICATES.get(of, 3)


def test_all_ten_sets_have_a_benchmark_and_poverty_one_for_each_fold():
    assert {name.split("/")[0] for name in WILDS} == PRIMARY.keys()
    assert sum(name.startswith("wilds_poverty/") for name in WILDS) == 5


@pytest.fixture
def place(tmp_path, monkeypatch, cache):
    """A home of definitions, and a home of nobody's yet."""
    folder = tmp_path / "definitions"
    folder.mkdir()
    monkeypatch.setenv("FARSHIFT_PATH", str(folder))
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "home"))
    return folder


def on_twin(name, split, place, **task):
    """The benchmark `name`, on a twin of its split; returns the name that it has there."""
    raw = find_benchmark(name).definition.model_dump(exclude_none=True)
    raw |= {"name": split, "split": f"{split}@1", "task": raw["task"] | task}
    folder = place / "benchmarks/definitions"
    folder.mkdir(parents=True)
    (folder / "twin.toml").write_bytes(tomli_w.dumps(raw).encode())
    return split


SESSIONS = {0: "Arvalis_1", 1: "Arvalis_2", 12: "ETHZ_1", 22: "NAU_1", 46: "Usask_1"}
OF_PART = {
    "official_train": (0, 1),
    "official_val": (12, 12),
    "official_test": (22, 46),
    "fixed_train_val": (0, 1),
    "fixed_train_test": (0, 1),
}


def test_boxes_in_wheat_from_the_pull_to_the_score(place, tmp_path):
    about = [(name, "France", "Gréoux", "Filling") for name in SESSIONS.values()]
    files = {"metadata_domain.csv": csv("name,country,location,development_stage", about, ";")}
    for table, sessions in OF_PART.items():
        rows = []
        for number in range(12):
            files[f"images/{table}{number}.png"] = picture(len(files))
            boxes = "no_box" if number == 11 else f"1 2 {number + 20} 30;50 50 60 {number + 60}"
            rows.append((f"{table}{number}.png", boxes, sessions[number % 2]))
        files[f"{table}.csv"] = csv("image_name,BoxesString,domain", rows)
    name = twin("wilds_globalwheat/official", place)
    split, _ = pulled(name, laid(tmp_path / "data/globalwheat_v1.1", files))
    known = dict(zip(*(split.part("ood_test").numpy([key])[key] for key in ("image", "boxes")), strict=True))

    class Half:
        """Finds the first box of each picture of the test, and all that there is nowhere else."""

        def predict(self, batch):
            return [
                [[*map(float, box.split()), 0.9] for box in known.get(item, "").split(";")[:1] if box]
                for item in batch["image"]
            ]

    run = fs.evaluate(Half(), on=on_twin("wilds_globalwheat/official", name, place), seeds=1, out=tmp_path / "run")
    result = fs.score(run)
    assert result.ood.value == pytest.approx((0.5 + (5 * 0.5 + 1) / 6) / 2, abs=1e-6)
    assert result.id.value == pytest.approx((0 + 1 / 6) / 2, abs=1e-6), "a picture without boxes"
    assert result.metrics["mean_average_precision@1"].ood.value == pytest.approx(51 / 101, abs=1e-6)


def test_assays_of_molecules_from_the_pull_to_the_score(place, tmp_path):
    labels = [[row % 2, "" if row % 5 == 0 else row // 2 % 2, row // 3 % 2] for row in range(300)]
    table = [(*assays, f"CID{row}", "C" * (row + 1)) for row, assays in enumerate(labels)]
    files = {"pcba/mapping/mol.csv.gz": gz(csv("PCBA-1,PCBA-2,PCBA-3,mol_id,smiles", table))}
    for part, places in (("train", range(200)), ("valid", range(200, 240)), ("test", range(240, 300))):
        files[f"pcba/split/scaffold/{part}.csv.gz"] = gz("".join(f"{at}\n" for at in places).encode())
    name = twin("wilds_molpcba/official", place, options={"tasks": 3}, types={"assays": "float32[3]"})
    data = {"pcba.zip": zipped(files), "scaffold_group.npy": npy(np.arange(300) // 4)}
    pulled(name, laid(tmp_path / "data", data))

    class First:
        """Knows the first assay, and nothing of the others."""

        def predict(self, batch):
            return [[len(smiles) % 2 == 0, 0.0, 0.0] for smiles in batch["smiles"]]

    run = fs.evaluate(
        First(), on=on_twin("wilds_molpcba/official", name, place, classes=3), seeds=1, out=tmp_path / "run"
    )
    result = fs.score(run)
    rows = np.array([[np.nan if item == "" else item for item in row] for row in labels[240:]], float)
    share = [np.nanmean(rows[:, 1]), np.nanmean(rows[:, 2])]
    assert result.ood.value == pytest.approx(np.mean([1.0, *share]), abs=1e-6), (
        "of equal scores, the share that is right"
    )
    assert result.ood.low < result.ood.value < result.ood.high
