"""How fast are the pretrained networks that ship by name, beside plain PyTorch over the same networks?

make bench-real [ARGS="--pictures 64 --texts 512"]

1. Features of pictures: JPEGs of 227 x 227 pixels, as PACS has, of EfficientNet-Lite0. The bare loop decodes, transforms
   and encodes 32 at a time, with the same memory format; Farshift's time includes the digests of the files, and the
   features' way into the cache.
2. Features of texts of 5 to 60 words, of MiniLM. The bare loop sorts the texts by length and encodes 32 at a time.
3. A step of fine-tuning each: 8 pictures of 224 x 224 pixels, 16 texts of 32 tokens, on a batch in memory, AdamW. Both
   train every weight but the moments of batch normalisation.

Both sides run in turn, in one process, on one thread; seconds are this process's processor time and wall clock, and a
ratio is the bare loop's time over Farshift's: 1 is as fast. The peak memory of a step is of a process of its own.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from farshift.baselines.encoding import frozen
from farshift.baselines.encoding.checkpoint import ModuleCheckpoint, find_checkpoint, find_folder
from farshift.baselines.encoding.token_ids import choose_encoding
from farshift.baselines.recipe import find_recipe, make_fine_tuned, resolve_settings
from farshift.baselines.training.feed import move_to_device
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.model import Task
from PIL import Image
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer

PICTURES, TEXTS = "efficientnet-lite0", "all-minilm-l6-v2"
TASK = Task("classification", ("x",), "kind", classes=2)
AT_ONCE, ROUNDS, GOAL = 32, 3, 0.95
BATCH = {PICTURES: 8, TEXTS: 16}
Columns = dict[str, np.ndarray]
Work = Callable[[], object]


def make_pictures(count: int) -> list[bytes]:
    """Smooth coloured noise, about 20 kB each."""
    draws = np.random.default_rng(0)
    files = []
    for _ in range(count):
        small = Image.fromarray(draws.integers(0, 256, (57, 57, 3), np.uint8))
        out = io.BytesIO()
        small.resize((227, 227), Image.Resampling.BICUBIC).save(out, "JPEG", quality=90)
        files.append(out.getvalue())
    return files


def make_texts(count: int, fewest: int = 5, most: int = 60) -> list[str]:
    draws = np.random.default_rng(0)
    line = "the a film was not good bad long story of man who never saw rain again and yet it stays with you"
    return [" ".join(draws.choice(line.split(), draws.integers(fewest, most, endpoint=True))) for _ in range(count)]


def make_columns(values: list[Any]) -> Columns:
    column = np.empty(len(values), object)
    column[:] = values
    return {"x": column, "kind": np.arange(len(values)) % 2}


def mean_of_states(network: Any, encoded: Mapping[str, Tensor]) -> Tensor:
    mask = encoded["attention_mask"][..., None]
    states: Tensor = network(**encoded).last_hidden_state
    return (states * mask).sum(1) / mask.sum(1)


def loop_over_pictures(files: list[bytes]) -> Callable[[], np.ndarray]:
    checkpoint = find_checkpoint(PICTURES)
    assert isinstance(checkpoint, ModuleCheckpoint)
    network = checkpoint.build().eval().to(memory_format=torch.channels_last)

    @torch.no_grad()
    def loop() -> np.ndarray:
        starts = range(0, len(files), AT_ONCE)
        batches = (torch.from_numpy(checkpoint.transform.pixels(files[start : start + AT_ONCE])) for start in starts)
        return np.concatenate([network(batch).numpy() for batch in batches])

    return loop


def loop_over_texts(texts: list[str]) -> Callable[[], np.ndarray]:
    folder = find_folder(TEXTS).folder
    network, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)

    @torch.no_grad()
    def loop() -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        result = np.empty((len(texts), network.config.hidden_size), np.float32)
        for start in range(0, len(texts), AT_ONCE):
            places = order[start : start + AT_ONCE]
            encoded = tokenizer([texts[place] for place in places], padding=True, truncation=True, return_tensors="pt")
            result[places] = mean_of_states(network, encoded).numpy()
        return result

    return loop


def plain_step(weights: str, columns: Columns) -> Work:
    """A step of plain PyTorch on one batch: a network and a linear head."""
    label, checkpoint = torch.from_numpy(columns["kind"]), find_checkpoint(weights)
    if isinstance(checkpoint, ModuleCheckpoint):
        network: Any = checkpoint.build()
        pixels = torch.from_numpy(columns["x"]).permute(0, 3, 1, 2) / 255
        mean, deviation = (torch.full((3, 1, 1), value) for value in (0.498, 0.502))
        features = lambda: network(((pixels - mean) / deviation).contiguous(memory_format=torch.channels_last))  # noqa: E731
        network = network.train().to(memory_format=torch.channels_last)
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
    else:
        folder = find_folder(weights).folder
        network, tokenizer = AutoModel.from_pretrained(folder).train(), AutoTokenizer.from_pretrained(folder)
        encoded = tokenizer(list(columns["x"]), padding=True, return_tensors="pt")
        features = lambda: mean_of_states(network, encoded)  # noqa: E731
    head = nn.Linear(features().shape[1], 2)
    optimiser = torch.optim.AdamW([*network.parameters(), *head.parameters()], lr=5e-5, weight_decay=0, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        F.cross_entropy(head(features()), label).backward()
        optimiser.step()

    return step


def own_step(weights: str, columns: Columns) -> Work:
    """A step of the trainer, as `--fine-tune` makes it."""
    chosen = {"inputs": "tokens", "pooling": "mean"} if weights == TEXTS else {"side": 224}
    recipe = make_fine_tuned(find_recipe("erm"), weights, **chosen)
    settings = resolve_settings(recipe, "b", {"batch_size": BATCH[weights]})
    coding = choose_encoding(TASK, columns, settings)
    data = move_to_device(Data.of(coding.encode(columns), torch.ones(len(columns["kind"])), None), "auto", "cpu")
    stack = ReplicaStack("pretrained", "erm", [settings], ["r"], coding.sizes, "classification", data, 10_000)
    return Training(stack, data, 10_000).step


def make_batch(weights: str) -> Columns:
    if weights == TEXTS:
        return make_columns(make_texts(BATCH[TEXTS], 30, 30))  # 32 tokens with those of the beginning and the end
    pixels = np.random.default_rng(0).integers(0, 256, (BATCH[PICTURES], 224, 224, 3), np.uint8)
    return {"x": pixels, "kind": np.arange(len(pixels)) % 2}


def measure(work: Work, times: int = 1) -> np.ndarray:
    """Processor and wall-clock seconds."""
    start = np.array([time.process_time(), time.perf_counter()])
    for _ in range(times):
        work()
    return (np.array([time.process_time(), time.perf_counter()]) - start) / times


def compare(title: str, bare: Work, ours: Callable[[], Work], times: int = 1) -> None:
    """Print the median ratio of a few turns. ours: makes the work anew for each turn."""
    ratios, seconds = [], []
    for _ in range(ROUNDS):
        work = ours()
        seconds.append((measure(bare, times), measure(work, times)))
        ratios.append(seconds[-1][0] / seconds[-1][1])
    cpu, wall = (statistics.median(ratio[k] for ratio in ratios) for k in (0, 1))
    plain, own = (statistics.median(pair[k][0] for pair in seconds) for k in (0, 1))
    verdict = "met" if cpu >= GOAL else "missed"
    print(
        f"{title:>34}  plain {plain:7.3f} s  farshift {own:7.3f} s  ratio {cpu:.2f} (CPU) {wall:.2f} (wall)  "
        f"goal {GOAL}: {verdict}",
        flush=True,
    )


def encode(weights: str, columns: Columns) -> Callable[[], Callable[[], np.ndarray]]:
    """A fresh encoder, which knows no features yet, and an empty cache."""

    def make() -> Callable[[], np.ndarray]:
        frozen._load_encoder.cache_clear()
        encoder = frozen.FrozenColumns(weights, TASK, columns)

        def work() -> np.ndarray:
            with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, FARSHIFT_CACHE=cache):
                return encoder.columns(columns)["x"]

        return work

    return make


STEPS: dict[str, Callable[[str, Columns], Work]] = {"plain": plain_step, "farshift": own_step}


def print_peak(side: str, weights: str) -> None:
    step = STEPS[side](weights, make_batch(weights))
    for _ in range(3):
        step()
    lines = Path("/proc/self/status").read_text("ascii").splitlines()  # getrusage counts the parent's before exec, too
    print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")))


def measure_peak(side: str, weights: str) -> float:
    """The most memory of a process that imports torch and takes three steps, in MiB."""
    done = subprocess.run(
        [sys.executable, __file__, "--peak", side, weights], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--pictures", type=int, default=128)
    given.add_argument("--texts", type=int, default=1024)
    given.add_argument("--peak", nargs=2)
    requested = given.parse_args()
    torch.set_num_threads(1)
    if requested.peak:
        return print_peak(*requested.peak)
    files, texts = make_pictures(requested.pictures), make_texts(requested.texts)
    for title, weights, values, loop in (
        ("features of pictures", PICTURES, files, loop_over_pictures(files)),
        ("features of texts", TEXTS, texts, loop_over_texts(texts)),
    ):
        make = encode(weights, make_columns(values))
        assert np.allclose(loop(), make()(), atol=1e-4), "the peer must give the same features"
        compare(f"{title} ({len(values)})", loop, make)
    for weights, columns in ((name, make_batch(name)) for name in (PICTURES, TEXTS)):
        own = own_step(weights, columns)
        compare(f"a step of {weights}", plain_step(weights, columns), lambda own=own: own, times=4)
        peaks = {side: measure_peak(side, weights) for side in STEPS}
        print(
            f"{'peak memory':>34}  " + "  ".join(f"{side} {peak:.0f} MiB" for side, peak in peaks.items()), flush=True
        )
    return None


if __name__ == "__main__":
    main()
