"""Methods on pretrained networks, as their papers have them: PEGO, DFR, weak teachers, and CLIP's zero-shot head."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_hf
import tiny_vision
import torch
from encoded_files import picture
from farshift.baselines.baseline import Baseline
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.encoding.token_ids import check_shared
from farshift.baselines.layers.lora import Lora
from farshift.baselines.recipe import Recipe, find_recipe, make_fine_tuned, resolve_settings
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.adapters.clip import from_spec
from farshift.benchmarks.model import Budget, Task
from farshift.core.errors import ModelError

from .pretrained_stacks import HEAD, parts, stack_of, start, trained
from .toys import Rows

pytest.importorskip("transformers")


def test_pego_moves_groups_of_updates_to_queries_and_values_and_the_head(folders: dict[str, str]) -> None:
    training = trained("vit", folders["vit"], ["a", "b"], "pego", groups=2, rank=3)
    network = training.stack.network
    before, after = start("vit", folders["vit"]), parts(training.stack)
    assert {name for name in before if not torch.equal(before[name], after[name])} == HEAD
    layers = {name: module for name, module in network.named_modules() if isinstance(module, Lora)}
    assert len(layers) == 4
    assert all(name.endswith(("q_proj", "v_proj")) for name in layers)
    for layer in layers.values():
        assert layer.down.shape[:2] == (2, 6)
        assert layer.up.abs().sum() > 0
        assert not torch.equal(layer.down[0], layer.down[1])


def test_pego_has_its_paper_s_rate_and_others_domainbed_s(folders: dict[str, str]) -> None:
    rates = {
        name: resolve_settings(make_fine_tuned(find_recipe(name), folders["vit"]), "b")["lr"]
        for name in ("pego", "erm", "coral")
    }
    assert rates == {"pego": 5e-4, "erm": 5e-5, "coral": 5e-5}


def test_pego_needs_attention_and_no_other_updates(folders: dict[str, str]) -> None:
    with pytest.raises(ModelError, match="have no attention for pego to update"):
        trained("resnet", folders["resnet"], ["a"], "pego")
    for own in ({"lora_rank": 2}, {"freeze": "body"}):
        with pytest.raises(ModelError, match="leave lora_rank at 0 and freeze at none"):
            trained("vit", folders["vit"], ["a"], "pego", **own)


def test_a_weaker_pretrained_teacher_labels_the_rows_of_a_pretrained_student(
    folders: dict[str, str],
) -> None:
    own = {"teacher_weights": folders["resnet"], "teacher_percent": 50, "batch_size": 6, "dropout": 0.2}
    stack, data = stack_of("vit", folders["vit"], ["a", "b"], "weak-to-strong", 6, **own)
    training = Training(stack, data, 6)
    algorithm: Any = training.stack.algorithm
    assert training.stack.network.body.name == "resnet"
    for _ in range(3):
        training.step()
    assert training.stack.network.body.name == "vit"
    for name, value in start("vit", folders["vit"]).items():
        assert name == "dropout.p" or torch.equal(training.stack.network.state_dict()[name][0], value)
    assert algorithm.weak.shape == (2, 24, 3)
    assert algorithm.weak.std(dim=1).min() > 0, "the teacher, whose head began at 0, has learned"
    training.run()
    assert not training.outcome.failed
    alone = trained("vit", folders["vit"], ["b"], "weak-to-strong", 6, **own)
    assert abs(training.outcome.losses[1] - alone.outcome.losses[0]) < 1e-6


def test_a_teacher_reads_the_tokens_of_its_student_or_is_refused(folders: dict[str, str], tmp_path: Path) -> None:
    student = str(tiny_hf.classifier(tmp_path / "student"))
    other = tiny_hf.classifier(tmp_path / "other")
    check_shared(student, str(other), "tokens")
    tiny_hf.tokenizer(pairs=True, ends=True).save_pretrained(other)
    with pytest.raises(ModelError, match="setting teacher_weights: .* needs the tokenizer of"):
        check_shared(student, str(other), "tokens")
    short = tiny_hf.classifier(tmp_path / "short")
    config = json.loads((short / "config.json").read_text())
    (short / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 8}))
    with pytest.raises(ModelError, match="needs the tokenizer of .*, and as long a window"):
        check_shared(student, str(short), "tokens")
    slow, fast = (str(tiny_vision.sounds(tmp_path / f"{rate}", rate)) for rate in (4000, 8000))
    check_shared(slow, slow, "sounds")
    with pytest.raises(ModelError, match="needs the sampling rate and normalisation of"):
        check_shared(slow, fast, "sounds")
    with pytest.raises(ModelError, match="has no setting width"):
        trained("vit", folders["vit"], ["a"], "weak-to-strong", teacher_width=2)


TASK = Task("classification", ("image",), "way", classes=3, names=("left", "right", "jump"))


FILES = np.empty(12, object)
FILES[:] = [picture(number, side=8) for number in range(12)]


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> str:
    return str(tiny_vision.saved(tmp_path_factory.mktemp("clip") / "tiny-clip", "clip"))


def made(algorithm: str, weights: str, **own) -> Recipe:
    return make_fine_tuned(find_recipe(algorithm), weights, side=8, head="zero-shot", **own)


def scores(trained: Recipe, task: Task = TASK) -> np.ndarray:
    model = Baseline(trained, task, 0, "toy/toy", {"batch_size": 0, "lr": 1e-3})
    model.fit(Rows(image=FILES, way=np.arange(12) % 3), None, Budget(steps=3))
    return model.predict({"image": FILES}).scores


def zero_shot(weights: str, templates: str = "single") -> np.ndarray:
    """What CLIP says by itself, of the pixels that the network reads: as they are, scaled by their moments."""
    model = from_spec(weights, {"templates": templates})(0, TASK, "cpu", None)
    files, mean, deviation = FILES.tolist(), *(np.array(moment) for moment in tiny_vision.MOMENTS.values())

    from farshift.loaders.batching.images import decode_images

    pixels = decode_images(files, 8)
    scaled = (pixels / pixels.max() - mean) / deviation
    model.processor.pixels = lambda given: np.ascontiguousarray(scaled.transpose(0, 3, 1, 2), np.float32)
    model._factory.options = model._factory.options.model_copy(update={"batch_size": 12})
    return model.predict({"image": FILES}).scores


@pytest.mark.parametrize("templates", ["single", "look {} .|A {} twice"])
def test_wise_ft_from_the_zero_shot_end_is_the_zero_shot_classifier(weights, templates):
    result = scores(made("wise-ft", weights, alpha=0.0, templates=templates))
    np.testing.assert_allclose(result, zero_shot(weights, templates), atol=1e-4)


def test_a_probe_starts_from_the_zero_shot_head(weights):
    from farshift.baselines.networks.pretrained import Network
    from farshift.baselines.recipe import resolve_settings

    settings = resolve_settings(made("erm", weights), "b")
    network = Network(Sizes(3, numbers=192, shape=(8, 8, 3), names=TASK.names), settings)
    assert network.head.weight.shape == (1, 3, 6)
    lengths = network.head.weight[0].norm(dim=1)
    torch.testing.assert_close(lengths, torch.full_like(lengths, lengths[0].item()))
    features = network.encode(network.embed(torch.zeros(1, 2, 0), torch.rand(1, 2, 192)))
    torch.testing.assert_close(features.norm(dim=-1), torch.ones(1, 2))
    last = max(network.depths())
    assert network.depths()[-2:] == [last, last]


def test_a_zero_shot_head_that_cannot_be_is_refused(weights, tmp_path):
    unnamed = Task("classification", ("image",), "way", classes=3)
    with pytest.raises(ModelError, match="the classes of this benchmark have no names: use head = 'zero'"):
        scores(made("erm", weights), unnamed)
    vit = str(tiny_vision.saved(tmp_path / "vit", "vit"))
    with pytest.raises(ModelError, match="model vit is a vit, and zero-shot classification needs CLIP"):
        scores(made("erm", vit))
    with pytest.raises(ModelError, match="leave pooling at model"):
        scores(made("erm", weights, pooling="mean"))
