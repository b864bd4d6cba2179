"""PEGO and DFR on pretrained networks, as their papers have them: what moves, and towards what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_hf
import tiny_vision
import torch
from farshift.baselines.algorithms.pego import compute_overlap
from farshift.baselines.baseline import Baseline
from farshift.baselines.encoding.token_ids import check_shared
from farshift.baselines.layers.lora import Lora, merge_lora
from farshift.baselines.recipe import find_recipe, make_fine_tuned, resolve_settings
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.model import Budget, Task
from farshift.core.errors import ModelError

from .test_pretrained import HEAD, parts, pictures, settled, start, trained
from .toys import Rows

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("weights")
    return {kind: str(tiny_vision.saved(home / kind, kind)) for kind in ("vit", "resnet")}


def test_pego_moves_groups_of_updates_to_queries_and_values_and_the_head(folders: dict[str, str]) -> None:
    training = trained(["a", "b"], "pego", folders["vit"], groups=2, rank=3)
    network = training.stack.network
    before, after = start(folders["vit"]), parts(training)
    assert {name for name in before if not torch.equal(before[name], after[name])} == HEAD
    layers = {name: module for name, module in network.named_modules() if isinstance(module, Lora)}
    assert len(layers) == 4
    assert all(name.endswith(("q_proj", "v_proj")) for name in layers)
    for layer in layers.values():
        assert layer.down.shape[:2] == (2, 6)
        assert layer.up.abs().sum() > 0
        assert not torch.equal(layer.down[0], layer.down[1])
        update = layer.up @ layer.down
        torch.testing.assert_close(layer.merged(), layer.weight + update)
    answers = training.stack.answer(*training.data.inputs)
    merge_lora(network)
    torch.testing.assert_close(training.stack.answer(*training.data.inputs), answers, atol=1e-5, rtol=1e-4)


def test_orthogonality_is_what_the_penalty_makes(folders: dict[str, str]) -> None:
    def left(strength: float) -> float:
        training = trained(["a"], "pego", folders["vit"], steps=12, orthogonality=strength)
        layers = [module for module in training.stack.network.modules() if isinstance(module, Lora)]
        return sum(compute_overlap(layer.weight, layer.down, layer.up, 4).sum().item() for layer in layers)

    assert left(1.0) < left(0.0)


def test_pego_has_its_paper_s_rate_and_others_domainbed_s(folders: dict[str, str]) -> None:
    rates = {
        name: resolve_settings(make_fine_tuned(find_recipe(name), folders["vit"]), "b")["lr"]
        for name in ("pego", "erm", "coral")
    }
    assert rates == {"pego": 5e-4, "erm": 5e-5, "coral": 5e-5}


def test_pego_needs_attention_and_no_other_updates(folders: dict[str, str]) -> None:
    with pytest.raises(ModelError, match="have no attention for pego to update"):
        trained(["a"], "pego", folders["resnet"])
    for own in ({"lora_rank": 2}, {"freeze": "body"}):
        with pytest.raises(ModelError, match="leave lora_rank at 0 and freeze at none"):
            trained(["a"], "pego", folders["vit"], **own)


def test_dfr_fits_the_head_to_pretrained_features_balanced_over_groups(folders: dict[str, str]) -> None:
    """Held to scikit-learn's regression with an l1 penalty on the same features, all groups of one size."""
    from sklearn.linear_model import LogisticRegression

    generator = np.random.default_rng(0)

    def rows(count: int) -> Rows:
        pixels = generator.integers(0, 256, (count, 8, 8, 3)).astype(np.uint8)
        return Rows(image=pixels, kind=np.arange(count) % 2, group=np.arange(count) // 2 % 2)

    task = Task("classification", ("image",), "kind", classes=2)
    built = make_fine_tuned(find_recipe("dfr"), folders["vit"], side=8, freeze="body")
    model = Baseline(built, task, 0, "toy/toy", {"batch_size": 8, "draws": 2})
    train, val = rows(24), rows(40)
    model.fit(train, val, Budget(steps=2))
    scores = model.predict(val.only("image")).scores

    features = frozen_features(folders["vit"], train, val)
    scaled = (features - features.mean(0)) / features.std(0)
    fit: Any = LogisticRegression(l1_ratio=1.0, C=1.0, solver="saga", tol=1e-7, max_iter=50_000)
    expected = fit.fit(scaled, val.numpy()["kind"]).predict_proba(scaled)
    assert abs(scores - expected).max() < 0.05


def frozen_features(weights: str, train: Rows, val: Rows) -> np.ndarray:
    from farshift.baselines.encoding.encoding import Sizes
    from farshift.baselines.networks.pretrained import Network

    network = Network(
        Sizes(2, numbers=192, shape=(8, 8, 3)), resolve_settings(make_fine_tuned(find_recipe("erm"), weights), "b")
    )
    pixels = torch.from_numpy(val.numpy()["image"].reshape(1, 40, 192).astype(np.float32) / 255)
    with torch.no_grad():
        result: np.ndarray = network.eval().encode(network.embed(torch.zeros(1, 40, 0), pixels))[0].double().numpy()
    return result


def test_a_weaker_pretrained_teacher_labels_the_rows_of_a_pretrained_student(folders: dict[str, str]) -> None:
    own = {"teacher_weights": folders["resnet"], "teacher_percent": 50, "batch_size": 6, "dropout": 0.2}
    data, sizes = pictures()
    names = ["a", "b"]
    settings = [settled("weak-to-strong", folders["vit"], **own) for _ in names]
    stack = ReplicaStack("pretrained", "weak_to_strong", settings, names, sizes, "classification", data, 6)
    training = Training(stack, data, 6)
    algorithm: Any = training.stack.algorithm
    assert training.stack.network.body.name == "resnet"
    for _ in range(3):
        training.step()
    assert training.stack.network.body.name == "vit"
    for name, value in start(folders["vit"]).items():
        assert name == "dropout.p" or torch.equal(training.stack.network.state_dict()[name][0], value)
    assert algorithm.weak.shape == (2, 24, 3)
    assert algorithm.weak.std(dim=1).min() > 0, "the teacher, whose head began at 0, has learned"
    training.run()
    assert not training.outcome.failed
    alone = trained(["b"], "weak-to-strong", folders["vit"], 6, **own)
    assert abs(training.outcome.losses[1] - alone.outcome.losses[0]) < 1e-6


def test_a_teacher_reads_the_tokens_of_its_student_or_is_refused(folders: dict[str, str], tmp_path: Path) -> None:
    student = str(tiny_hf.classifier(tmp_path / "student"))
    other = tiny_hf.classifier(tmp_path / "other")
    check_shared(student, str(other), "tokens", "teacher_weights")
    tiny_hf.tokenizer(pairs=True, ends=True).save_pretrained(other)
    with pytest.raises(ModelError, match="setting teacher_weights: .* read one text with different tokenizers"):
        check_shared(student, str(other), "tokens", "teacher_weights")
    short = tiny_hf.classifier(tmp_path / "short")
    config = json.loads((short / "config.json").read_text())
    (short / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 8}))
    with pytest.raises(ModelError, match="reads 8 tokens at most, and texts are encoded for .* reads 16"):
        check_shared(student, str(short), "tokens", "teacher_weights")
    slow, fast = (str(tiny_vision.sounds(tmp_path / f"{rate}", rate)) for rate in (4000, 8000))
    check_shared(slow, slow, "sounds", "teacher_weights")
    with pytest.raises(ModelError, match="has sampling_rate = 8000, and audio is encoded for .* which has 4000"):
        check_shared(slow, fast, "sounds", "teacher_weights")
    with pytest.raises(ModelError, match="has no setting width"):
        trained(["a"], "weak-to-strong", folders["vit"], teacher_width=2)
