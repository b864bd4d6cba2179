"""CLIP's zero-shot classifier as the head that fine-tuning starts from, and the end that WiSE-FT interpolates from."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_vision
import torch
from encoded_files import picture
from farshift.baselines.baseline import Baseline
from farshift.baselines.recipe import Recipe, find_recipe, make_fine_tuned
from farshift.benchmarks.adapters.clip import from_spec
from farshift.benchmarks.model import Budget, Task
from farshift.core.errors import ModelError

from .toys import Rows

pytest.importorskip("transformers")

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


def test_wise_ft_lies_between_the_zero_shot_classifier_and_the_fine_tuned_one(weights):
    early, half, last = (scores(made("wise-ft", weights, alpha=alpha)) for alpha in (0.0, 0.5, 1.0))
    assert abs(early - last).max() > 1e-3
    np.testing.assert_allclose(scores(made("erm", weights)), last, atol=1e-6)
    assert abs(half - (early + last) / 2).max() < abs(early - last).max() / 2


def test_a_probe_starts_from_the_zero_shot_head(weights):
    from farshift.baselines.encoding.encoding import Sizes
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


def test_what_cannot_be_is_refused(weights, tmp_path):
    unnamed = Task("classification", ("image",), "way", classes=3)
    with pytest.raises(ModelError, match="the classes of this benchmark have no names: use head = 'zero'"):
        scores(made("erm", weights), unnamed)
    vit = str(tiny_vision.saved(tmp_path / "vit", "vit"))
    with pytest.raises(ModelError, match="model vit is a vit, and zero-shot classification needs CLIP"):
        scores(made("erm", vit))
    with pytest.raises(ModelError, match="leave pooling at model"):
        scores(made("erm", weights, pooling="mean"))
