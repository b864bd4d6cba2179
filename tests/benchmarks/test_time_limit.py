"""A model that hangs is named with its rows, and nothing that was answered is lost."""

from __future__ import annotations

import signal
import time

import farshift as fs
import pytest
from farshift.benchmarks.harness.predictor import PredictTimeout, limit_time
from farshift.core.errors import ModelError

HANGS = """
import ctypes, time
class Hangs:
    def __init__(self, seed): self.asked = 0
    def predict(self, batch):
        self.asked += 1
        if self.asked == 3 and {hang}:
            {how}
        return (batch["a"] + batch["b"]) % 97
"""

SLEEP = "time.sleep(3600)"
SWALLOWS = "\n            ".join(["try: time.sleep(3600)", "except Exception: pass"])
# A lock that is taken twice: the second call waits forever, whatever signals come.
NATIVE = (
    "lib, lock = ctypes.CDLL(None), ctypes.create_string_buffer(64); [lib.pthread_mutex_lock(lock) for _ in range(2)]"
)


@pytest.fixture
def evaluate(tmp_path, farshift):
    """Evaluate a model that hangs in its third batch: the command as it ended, if it ever does, and its seconds."""

    def run(how, hang=True, limit="1.5"):
        (tmp_path / "m.py").write_text(HANGS.format(hang=hang, how=how))
        options = ["--seeds", 1, "--out", tmp_path / "r", "--batch-size", 500, "--time-limit", limit]
        began = time.monotonic()
        done = farshift("evaluate", f"{tmp_path / 'm.py'}:Hangs", "--on", "modadd97/xi35", *options)
        return done, time.monotonic() - began

    return run


@pytest.mark.parametrize("how", [SLEEP, SWALLOWS], ids=["sleeps", "swallows exceptions"])
def test_a_model_that_hangs_is_named_with_its_rows_and_what_was_answered_is_kept(evaluate, tmp_path, how):
    done, _ = evaluate(how)
    assert done.returncode == 2
    assert "predict took more than 1.5 s on id_test, batch 2 (rows " in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    (shard,) = (tmp_path / "r" / "shards" / "seed-0" / "main").glob("*.arrow")
    assert shard.name.split(".")[0:3:2] == ["id_test", "0-1000"]


def test_native_code_that_never_comes_back_ends_the_process_with_one_line(evaluate):
    done, seconds = evaluate(NATIVE)
    assert done.returncode == 2
    assert seconds > 5
    assert "predict did not return in time and cannot be interrupted; finished predictions are kept" in done.stderr


def test_a_slow_fit_is_no_hanging_predict():
    class Slow:
        def fit(self, train, val, budget):
            time.sleep(1.2)

        def predict(self, batch):
            return (batch["a"] + batch["b"]) % 97

    assert fs.evaluate(Slow, on="modadd97/xi35", seeds=1, time_limit=1).seeds == (0,)


def test_the_limit_is_for_each_batch_anew_and_leaves_no_alarm_behind():
    before = signal.getsignal(signal.SIGALRM)
    for _ in range(3):
        with limit_time(1):
            time.sleep(0.4)
    with pytest.raises(PredictTimeout), limit_time(1):
        time.sleep(3600)
    time.sleep(1.1)
    assert signal.getsignal(signal.SIGALRM) is before


def test_in_a_library_the_error_is_raised_to_the_caller():
    class Hangs:
        def predict(self, batch):
            time.sleep(3600)

    with pytest.raises(
        ModelError, match=r"took more than 0\.2 s on id_test, batch 0 .*allow more time \(--time-limit\)"
    ):
        fs.evaluate(Hangs(), on="modadd97/xi35", seeds=1, time_limit=0.2)
