"""The labels that a model is scored by are in no object or open file when it predicts: one that looks finds none."""

from __future__ import annotations

import json
import shutil
import sys

import farshift as fs
import numpy as np
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.blind.data import load_model_inputs
from farshift.core.errors import Unavailable
from farshift.core.files import get_cache_root
from farshift.core.progress import report_to
from support import Heard

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
for number, snoop in enumerate(snoops):  # first where the split is pulled and prepared, then where all is there
    fs.evaluate(snoop, on="optdigits/writers", seeds=1, batch_size=4096, out=f"{sys.argv[1]}-{number}")
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
    """Also where the split is pulled and the benchmark prepared in the same call."""
    done = python.run("-c", SNOOP, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    for seen in json.loads(done.stdout):
        assert seen["found"] == {"id_test": False, "ood_test": False}
        assert seen["arrays"] > 0, "it did look"
        assert all("digit" not in columns for columns in seen["tables"])
        data = [path for path in (*seen["files"], *seen["mapped"]) if path.endswith((".arrow", ".parquet"))]
        assert data, "the blind data is mapped"
        assert all("/handouts/" in path for path in data), "and no file of the split or its source is"


def test_the_handout_of_a_test_part_holds_ids_and_inputs_and_nothing_else():
    import pyarrow as pa

    for name in ("optdigits/writers", "scan/length", "modadd97/xi35"):
        bench = find_benchmark(name)
        blind = load_model_inputs(bench)
        inputs = set(bench.definition.task.inputs)
        for part in bench.predicted_parts:
            columns = set(pa.ipc.open_file(pa.memory_map(str(blind.folder / f"{part}.arrow"))).schema.names)
            trained_on = {bench.definition.task.label, "weight", "group"} if part in ("train", "id_val") else set()
            assert {"row_id"} | inputs <= columns <= {"row_id"} | inputs | trained_on, (name, part)


def test_training_labels_in_the_handout_are_the_given_ones():
    bench = find_benchmark("modadd97/xi35")
    train = bench.part("train")
    given = load_model_inputs(bench).training("train").columns["sum"]
    assert np.array_equal(given, train.observed_labels())
    assert (given != train.true_labels()).mean() > 0.3


AFTER_A_SCORE = """
import gc, sys
import farshift as fs, numpy as np
bench = fs.benchmark("modadd97/xi35")
truth = bench.part("id_test").true_labels().tobytes()
del bench
gc.unfreeze()

def reachable():
    for thing in gc.get_objects():
        yield from (value for value in gc.get_referents(thing) if isinstance(value, np.ndarray))

class Zero:
    def predict(self, batch):
        return np.zeros(len(batch["a"]), int)

class Snoop(Zero):
    seen = None
    def predict(self, batch):
        if self.seen is None:  # to walk over every object of a process takes seconds
            gc.collect()
            self.seen = [array.tobytes() for array in reachable() if array.nbytes == len(truth)]
        return super().predict(batch)

fs.score(fs.evaluate(Zero(), on="modadd97/xi35", seeds=1, out=sys.argv[1] + "/zero"))
snoop = Snoop()
fs.evaluate(snoop, on="modadd97/xi35", seeds=1, out=sys.argv[1] + "/snoop")
assert snoop.seen, "the row ids of that part are as long"
assert truth not in snoop.seen
"""


def test_scoring_leaves_no_label_behind_for_the_next_model(python, tmp_path):
    done = python.run("-c", AFTER_A_SCORE, tmp_path)
    assert done.returncode == 0, done.stderr


def test_damaged_model_inputs_are_written_again_and_a_line_says_so(cache):
    bench = find_benchmark("modadd97/xi35")
    before = load_model_inputs(bench).part("id_test").batch(slice(None))
    (file,) = get_cache_root().glob("handouts/modadd97*/id_test.arrow")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    heard = Heard()
    with report_to(heard):
        after = load_model_inputs(bench).part("id_test").batch(slice(None))
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert heard.lines == [f"{file} is truncated or modified: building it again"]


def test_model_inputs_of_data_that_cannot_be_had_are_refused(cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    with pytest.raises(Unavailable, match="optdigits"):
        load_model_inputs(find_benchmark("optdigits/writers"))


def test_a_cache_of_inputs_alone_suffices_to_evaluate_so_that_a_container_needs_no_labels(
    farshift, tmp_path, monkeypatch
):
    on, run, cache = "modadd97/xi35", tmp_path / "run", tmp_path / "inputs"
    folder = load_model_inputs(find_benchmark(on)).folder
    shutil.copytree(folder, cache / "handouts" / folder.name)
    (tmp_path / "adder.py").write_text("def predict(batch):\n    return (batch['a'] + batch['b']) % 97\n")
    with monkeypatch.context() as container:
        container.setenv("FARSHIFT_CACHE", str(cache))
        container.setenv("FARSHIFT_OFFLINE", "1")
        model = f"{tmp_path / 'adder.py'}:predict"
        done = farshift("evaluate", model, "--on", on, "--seeds", "1", "--out", run, "--no-score")
    assert (done.returncode, done.stdout) == (0, f"run: {run}\n"), done.stderr
    assert not {"sources", "splits", "files"} & {path.name for path in cache.iterdir()}
    assert fs.score(run).ood.value == 1.0
