"""The labels that a model is scored by are in no object or open file when it predicts: one that looks finds none."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.model_inputs.load import load_model_inputs
from farshift.core.errors import Unavailable

SNOOP = """
import gc, json, os, sys
import numpy as np
import farshift as fs

def reachable():
    # Every object that the collector knows, and whatever one of them refers to (arrays themselves it does not know).
    for thing in gc.get_objects():
        yield thing
        yield from gc.get_referents(thing)

class Snoop:
    def predict(self, batch):
        import pyarrow as pa
        arrays, tables = set(), set()
        for thing in reachable():
            if isinstance(thing, np.ndarray) and thing.dtype.kind in "iu" and thing.ndim == 1 and len(thing) > 100:
                arrays.add(thing.astype(np.int64).tobytes())
            if isinstance(thing, pa.Table):
                tables.add(tuple(thing.column_names))
        self.arrays, self.tables = arrays, tables
        self.files = sorted({os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{name}")})
        with open("/proc/self/maps") as maps:
            self.mapped = sorted({line.split()[-1] for line in maps if "/cache" in line})
        return np.zeros(len(batch["pixels"]), int)

gc.unfreeze()
snoops = [Snoop(), Snoop()]
for number, snoop in enumerate(snoops):  # first where the split is pulled and prepared, then where a run was scored
    run = fs.evaluate(snoop, on="optdigits/writers", seeds=1, batch_size=4096, out=f"{sys.argv[1]}-{number}")
    fs.score(run)
    gc.collect()
from farshift.benchmarks.benchmark import find_benchmark
bench = find_benchmark("optdigits/writers")
labels = {name: bench.part(name).true_labels().astype(np.int64).tobytes() for name in ("id_test", "ood_test")}
print(json.dumps([
    {"found": {name: truth in snoop.arrays for name, truth in labels.items()}, "arrays": len(snoop.arrays),
     "tables": sorted(snoop.tables), "files": snoop.files, "mapped": snoop.mapped}
    for snoop in snoops
]))
"""


@pytest.mark.attack("entrant", "a model that searches the objects and open files of its process for labels")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_model_that_walks_the_object_graph_and_the_open_files_finds_no_test_label(cache, python, tmp_path):
    """Also where the split is pulled and the benchmark prepared in the same call, and where a run was scored before."""
    done = python.run("-c", SNOOP, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    for seen in json.loads(done.stdout):
        assert seen["found"] == {"id_test": False, "ood_test": False}
        assert seen["arrays"] > 0, "it did look"
        assert ["row_id", "pixels"] in seen["tables"], "the inputs are there"
        assert all("digit" not in columns for columns in seen["tables"])


def test_model_inputs_are_ids_and_inputs_and_for_training_what_was_observed():
    for name in ("optdigits/writers", "scan/length", "modadd97/xi35"):
        bench = find_benchmark(name)
        model_inputs, task = load_model_inputs(bench), bench.task
        for part in bench.predicted_parts:
            assert set(model_inputs.parts[part].columns) == {"row_id", *task.inputs}
            assert set(model_inputs.part(part).columns) == {*task.inputs}
            assert np.array_equal(model_inputs.part(part).row_ids, bench.part(part).row_ids)
        assert set(model_inputs.observed) == {"train", "id_val"}
        with pytest.raises(KeyError):
            model_inputs.training("id_test")


def test_training_labels_are_the_observed_ones():
    bench = find_benchmark("modadd97/xi35")
    train = bench.part("train")
    given = load_model_inputs(bench).training("train").columns["sum"]
    assert np.array_equal(given, train.observed_labels())
    assert (given != train.true_labels()).mean() > 0.3


@pytest.mark.parametrize("on", ["modadd97/xi35", "optdigits/writers"])
def test_what_a_training_writes_into_its_rows_does_not_reach_the_next(on):
    model_inputs = load_model_inputs(find_benchmark(on))
    before = {name: column.copy() for name, column in model_inputs.training("train").numpy().items()}
    for column in model_inputs.training("train").numpy().values():
        column[:] = column[::-1].copy()
    after = model_inputs.training("train").numpy()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_model_inputs_of_data_that_cannot_be_had_are_refused(cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    with pytest.raises(Unavailable, match="optdigits"):
        load_model_inputs(find_benchmark("optdigits/writers"))
