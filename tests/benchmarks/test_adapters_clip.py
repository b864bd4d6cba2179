"""CLIP without training: the classifier of section 3.1.4, held to plain transformers, and what its run card says."""

from __future__ import annotations

from pathlib import Path

import farshift as fs
import numpy as np
import picture_split
import pytest
import tiny_vision
from encoded_files import column, picture
from farshift import FarshiftError, check_model, read_run
from farshift.benchmarks.adapters._transformers import ImageProcessor
from farshift.benchmarks.adapters.clip import TEMPLATES, format_class_names, from_spec, parse_templates
from farshift.benchmarks.adapters.hugging_face import from_spec as hugging_face
from farshift.benchmarks.model import Task
from farshift.core.errors import ModelError

pytest.importorskip("transformers")

WAY = Task("classification", ("image",), "way", classes=3, names=("left", "right", "jump"))
FILES = column(*(picture(number, side=8) for number in range(5)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_vision.saved(tmp_path_factory.mktemp("clip") / "tiny-clip", "clip")


def by_hand(folder: Path, templates: list[str]) -> np.ndarray:
    """Probabilities by the mean of the unit features that CLIPModel's own forward gives for each template."""
    import torch
    import transformers

    network = transformers.CLIPModel.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    pixels = torch.from_numpy(ImageProcessor(folder).pixels(FILES))
    texts = [
        words([template.format(name) for name in WAY.names], padding=True, return_tensors="pt")
        for template in templates
    ]
    with torch.no_grad():
        outs = [network(pixel_values=pixels, **text) for text in texts]
        mean = torch.stack([out.text_embeds for out in outs]).mean(0)
        mean = mean / mean.norm(dim=1, keepdim=True)
        return (network.logit_scale.exp() * outs[0].image_embeds @ mean.T).double().softmax(1).numpy()


@pytest.mark.parametrize("templates", [["a photo of a {}."], ["look {} .", "A {} twice", "run Q : {}"]])
def test_it_is_the_classifier_that_plain_transformers_give(folder, templates):
    model = from_spec(str(folder), {"templates": "|".join(templates), "batch_size": "2"})(0, WAY, "cpu", None)
    answers = model.predict({"image": FILES})
    np.testing.assert_allclose(answers.scores, by_hand(folder, templates), atol=1e-5)
    np.testing.assert_array_equal(answers.prediction, answers.scores.argmax(1))
    assert len(np.unique(answers.scores)) > 3, "the texts of classes differ"


def test_it_keeps_the_contract_of_a_model(folder):
    check_model(from_spec(str(folder), {}), WAY, batch={"image": FILES})


def test_the_published_sets_have_as_many_templates_as_published():
    assert {name: len(set(result)) for name, result in TEMPLATES.items()} == {"single": 1, "imagenet": 80, "cifar": 18}
    assert all(text.count("{}") == 1 for result in TEMPLATES.values() for text in result)
    assert format_class_names(["polar_bear", "art  painting"]) == ["polar bear", "art painting"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("imagnet", "imagenet"), ("a {} of {}", "template"), ("a {name}", "template"), ("a {}|none", "template")],
)
def test_templates_that_are_none_are_refused(text, complaint):
    with pytest.raises(FarshiftError, match=complaint):
        parse_templates(text)


def test_classes_need_names_and_may_be_given_others(folder):
    unnamed = Task("classification", ("image",), "way", classes=3)
    with pytest.raises(ModelError, match=r"clip:tiny-clip has no class names: .* 'names=cat\|dog'"):
        from_spec(str(folder), {})(0, unnamed, "cpu", None)
    with pytest.raises(ModelError, match="has 2 names for 3 classes"):
        from_spec(str(folder), {"names": "left|right"})(0, WAY, "cpu", None)
    given = from_spec(str(folder), {"names": "left|right|jump"})(0, unnamed, "cpu", None)
    named = from_spec(str(folder), {})(0, WAY, "cpu", None)
    np.testing.assert_array_equal(*(model.predict({"image": FILES}).scores for model in (given, named)))


def test_what_is_no_clip_or_no_picture_is_refused(folder, tmp_path):
    vit = tiny_vision.saved(tmp_path / "vit", "vit")
    with pytest.raises(ModelError, match="model vit is a vit, and zero-shot classification needs CLIP"):
        from_spec(str(vit), {})(0, WAY, "cpu", None)
    words = np.array(["text"] * 5, object)
    with pytest.raises(ModelError, match="input 'image' is not an image"):
        from_spec(str(folder), {})(0, WAY, "cpu", None).predict({"image": words})
    with pytest.raises(ModelError, match="this is a regression task"):
        from_spec(str(folder), {})(0, Task("regression", ("image",), "y"), "cpu", None)


@pytest.mark.slow
def test_the_command_line_evaluates_it_and_the_card_declares_its_weights(folder, farshift, tmp_path, monkeypatch):
    picture_split.split(tmp_path, monkeypatch)
    options = ("--option", "templates=cifar", "--budget", "quick", "--seeds", "1", "--out", "runs/zero")
    done = farshift("evaluate", f"clip:{folder}", "--on", "photos/sketch", *options, FARSHIFT_PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    card = read_run("runs/zero").card
    assert card.model.name == "tiny-clip"
    assert card.model.extra["pretrained"] == [{"name": "tiny-clip", "digest": hugging_face(str(folder), {}).code}]
    assert card.model.extra["code"] == from_spec(str(folder), {"templates": "cifar"}).code
    assert card.model.extra["code"] != from_spec(str(folder), {}).code
    spent = card.spent.by_seed["seed_0"]
    assert (spent["templates"], spent["prompts"]) == ("cifar", 18)
    assert fs.score("runs/zero").id.value >= 0
