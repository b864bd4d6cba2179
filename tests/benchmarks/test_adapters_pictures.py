"""Pictures and sounds as models ask for them: functions, objects, estimators, modules, transformers, commands."""

from __future__ import annotations

import io
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import farshift as fs
import numpy as np
import picture_split
import pyarrow.parquet as pq
import pytest
import tiny_vision
from encoded_files import column, picture, sound
from farshift import FarshiftError, read_run
from farshift.benchmarks.adapters import adapt_model
from farshift.benchmarks.adapters._transformers import ImageProcessor
from farshift.benchmarks.adapters.hugging_face import from_spec as hugging_face
from farshift.benchmarks.answers import FAILED
from farshift.benchmarks.model import Task
from farshift.benchmarks.model_inputs.rows import ModelRows
from farshift.core.errors import BadData, ModelError
from farshift.loaders.batching.images import decode_images
from farshift.loaders.batching.input_format import InputFormat
from farshift.loaders.batching.transform import Transform
from farshift.loaders.decoders import load_decoder
from PIL import Image

KIND = Task("classification", ("image",), "kind", classes=2, names=("left", "right"))
SPOKEN = Task("classification", ("said",), "word", classes=2)


FILES = column(*(picture(number, "PNG", 8) for number in range(6)))


BROKEN = 30
"""Of the pictures asked about: the other domain, the numbers 24 to 47, is the test."""


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield picture_split.split(tmp_path_factory.mktemp("photos"), patch, broken=(BROKEN,))


def statuses(run) -> dict:
    """How many rows of each part are lost."""
    table = pq.read_table(run.path / "predictions.parquet").to_pylist()
    return dict(Counter(row["part"] for row in table if row["status"] == FAILED))


def spent(run) -> dict:
    return read_run(run.path).card.spent.by_seed["seed_0"]


class Seen:
    """A model that learns and answers nothing, and keeps what it was given."""

    def __init__(self, **asked):
        self.given = []
        for name, value in asked.items():
            setattr(self, name, value)

    def fit(self, train, val, budget):
        self.given += [train.numpy()["image"], next(train.batches(4, seed=0))["image"], val.numpy()["image"]]

    def predict(self, batch):
        self.given.append(batch["image"])
        return [0] * len(batch["image"])


@pytest.mark.parametrize(
    ("asked", "kind", "shape"),
    [
        ({}, bytes, ()),
        ({"images": "bytes"}, bytes, ()),
        ({"images": "PIL"}, Image.Image, ()),
        ({"images": 5}, np.ndarray, (5, 5, 3)),
        ({"images": "resize 6x4, normalise half"}, np.ndarray, (3, 6, 4)),
    ],
)
def test_training_and_asking_give_the_form_that_a_model_asks_for(photos, asked, kind, shape):
    built = []

    def factory(seed):
        built.append(Seen(**asked))
        return built[-1]

    run = fs.evaluate(factory, on=photos, seeds=1, budget="quick")
    assert len(built[0].given) > 4
    for given in built[0].given:
        assert given.shape[1:] == shape
        assert all(isinstance(item, kind) for item in given)
    remarks = {name: spent(run).get(name) for name in ("pictures", "decoder")}
    output = {"pictures": f"{asked.get('images')}{' pixels' if shape == (5, 5, 3) else ''}"}
    expected = {"pictures": None, "decoder": None} if kind is bytes else output | {"decoder": load_decoder().version}
    assert remarks == expected


def test_a_function_asks_by_predictor_or_by_an_attribute():
    def shapes(batch):
        return batch["image"]

    assert InputFormat.of(fs.predictor(shapes, images=7)).given({"image": FILES})["image"].shape == (6, 7, 7, 3)
    shapes.images = "PIL"
    assert InputFormat.of(adapt_model(shapes, KIND, 0)).images == "PIL"
    assert fs.predictor(shapes).code != fs.predictor(shapes, images=7).code
    with pytest.raises(FarshiftError, match="images = 0: use 'bytes'"):
        InputFormat.of(fs.predictor(shapes, images=0)).given({"image": FILES})
    submodules = SimpleNamespace(audio=len, images=list)
    assert InputFormat.of(submodules) == InputFormat("bytes", "bytes"), "they are no requests"


def test_an_estimator_gets_small_pixels_or_what_it_asks_for(photos):
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    run = fs.evaluate(KNeighborsClassifier(1), on=photos, seeds=1, budget="quick")
    assert spent(run)["pictures"] == "32 pixels"
    model = adapt_model(KNeighborsClassifier(1), KIND, 0)
    rows = {"image": FILES, "kind": np.arange(6) % 2, "weight": np.ones(6, int)}
    features = model._features(model.forms.given(rows))
    np.testing.assert_array_equal(features, decode_images(FILES, 32).reshape(6, -1))
    pixels = np.zeros((2, 4, 4), np.uint8)
    assert model._features(model.forms.given({"image": pixels})).shape == (2, 16)

    corner = FunctionTransformer(lambda images: np.array([image.getpixel((0, 0)) for image in images]))
    pipeline = make_pipeline(corner, KNeighborsClassifier(1))
    pipeline.images = "PIL"
    assert fs.score(fs.evaluate(pipeline, on=photos, seeds=1, budget="quick")).id.value >= 0


def test_an_estimator_of_sounds_says_at_what_rate():
    from sklearn.neighbors import KNeighborsClassifier

    with pytest.raises(ModelError, match="input 'said' is encoded audio: .* set its `audio` to a rate"):
        adapt_model(KNeighborsClassifier(1), SPOKEN, 0).predict({"said": column(sound(1))})
    asking = KNeighborsClassifier(1)
    asking.audio = 8000
    (heard,) = adapt_model(asking, SPOKEN, 0).forms.given({"said": column(sound(1))})["said"]
    assert heard.shape == (20,)


def test_a_module_reads_tensors_of_the_form_it_asks_for(photos):
    torch = pytest.importorskip("torch")

    class Mean(torch.nn.Module):
        def forward(self, pixels):
            self.seen = pixels
            return pixels.flatten(1)[:, :2]

    with pytest.raises(ModelError, match="encoded images: set the module's attribute `images` to a side"):
        fs.evaluate(Mean(), on=photos, seeds=1, budget="quick")
    for requested, shape in ((6, (6, 6, 3)), ("resize 4x4, normalise imagenet", (3, 4, 4))):
        module = Mean()
        module.images = requested
        model = adapt_model(module, KIND, 0)
        given = model.forms.given({"image": FILES})
        model.predict(given)
        assert model.module.seen.dtype == torch.float32
        np.testing.assert_array_equal(model.module.seen.numpy(), given["image"].astype(np.float32))
        assert given["image"].shape == (6, *shape)
        fs.evaluate(module, on=photos, seeds=1, budget="quick")


def test_a_training_picture_that_cannot_be_decoded_is_named_by_its_row():
    columns = {"image": column(*FILES[:3], FILES[3][:60])}
    rows = ModelRows(columns, np.arange(160, 164, dtype=np.uint64), forms=InputFormat(4))
    with pytest.raises(BadData, match="^row 00000000000000a3: its image cannot be decoded"):
        rows.numpy()
    with pytest.raises(BadData, match="^row 00000000000000a3: its image cannot be decoded"):
        list(rows.batches(2, seed=1))


# transformers


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> dict[str, Path]:
    pytest.importorskip("transformers")
    home = tmp_path_factory.mktemp("vision")
    kinds = {kind: tiny_vision.saved(home / kind, kind, names=("right", "twice", "left")) for kind in ("vit", "resnet")}
    return kinds | {"plain": tiny_vision.saved(home / "plain", "convnext", classes=2)}


@pytest.mark.parametrize("kind", ["vit", "resnet", "plain"])
def test_an_image_classifier_answers_as_plain_transformers_do(weights, kind):
    import torch
    import transformers

    folder = weights[kind]
    network = transformers.AutoModelForImageClassification.from_pretrained(folder).eval()
    pixels = ImageProcessor(folder).pixels(FILES)
    with torch.no_grad():
        logits = network(pixel_values=torch.from_numpy(pixels)).logits.double()
    logits = logits if kind == "plain" else logits[:, [2, 0]]
    answers = hugging_face(str(folder), {"batch_size": "4"})(0, KIND, "cpu", None).predict({"image": FILES})
    np.testing.assert_allclose(answers.scores, logits.softmax(1).numpy(), atol=1e-5)
    images = np.stack([np.asarray(Image.open(io.BytesIO(file))) for file in FILES])
    again = hugging_face(str(folder), {})(0, KIND, "cpu", None).predict({"image": images})
    np.testing.assert_allclose(again.scores, answers.scores, atol=1e-5)


def bright(batch):
    return (batch["image"].mean(axis=(1, 2, 3)) > 127).astype(int)


@pytest.mark.parametrize("kind", ["function", "vit"])
def test_a_picture_that_cannot_be_decoded_is_lost_and_the_others_are_answered(weights, photos, kind):
    model = hugging_face(str(weights["vit"]), {}) if kind == "vit" else fs.predictor(bright, images=8)
    run = fs.evaluate(model, on=photos, seeds=1, budget="quick")
    assert statuses(run) == {"ood_test": 1}
    assert spent(run)["decoder"].startswith(load_decoder().version)
    assert spent(run)["pictures"] == ("processor of vit" if kind == "vit" else "8 pixels")
    declared = read_run(run.path).card.model.extra.get("pretrained", [])
    assert [item["name"] for item in declared] == ["vit"] * (kind == "vit")


def test_an_image_classifier_reads_pictures_alone(weights):
    factory = hugging_face(str(weights["vit"]), {})
    with pytest.raises(ModelError, match="input 'image' is not an image, and hf:vit reads only images"):
        factory(0, KIND, "cpu", None).predict({"image": column("text")})
    with pytest.raises(ModelError, match="reads a single image, and this task has 2 inputs"):
        two = Task("classification", ("image", "other"), "kind", classes=3)
        factory(0, two, "cpu", None).predict({"image": FILES, "other": FILES})


def test_a_sound_classifier_reads_each_sound_alone(tmp_path):
    pytest.importorskip("transformers")
    import torch
    import transformers

    folder = tiny_vision.sounds(tmp_path / "said", classes=2)
    model = hugging_face(str(folder), {})(0, SPOKEN, "cpu", None)
    files = column(sound(1), sound(300))
    given = InputFormat.of(model).given({"said": files})
    scores = model.predict(given).scores
    np.testing.assert_allclose(model.predict({"said": given["said"][:1]}).scores[0], scores[0], atol=1e-6)
    network = transformers.AutoModelForAudioClassification.from_pretrained(folder).eval()
    words = transformers.AutoFeatureExtractor.from_pretrained(folder)
    with torch.no_grad():
        by_hand = network(words(given["said"][1], sampling_rate=4000, return_tensors="pt")["input_values"]).logits
    np.testing.assert_allclose(scores[1], by_hand.double().softmax(1)[0].numpy(), atol=1e-5)


# tensors of a part


def test_a_part_gives_tensors_by_a_named_transform_or_a_model_s_own_processor(photos, weights):
    torch = pytest.importorskip("torch")
    part, steps, own = photos.part("train"), "resize 6x4, normalise imagenet", fs.processor(str(weights["resnet"]))
    files = part.numpy(["image"])["image"]
    for images, expected in ((steps, Transform(steps)), (own, ImageProcessor(weights["resnet"]))):
        (batch,) = part.torch(64, seed=None, images=images)
        np.testing.assert_array_equal(batch["image"].numpy(), expected.pixels(files))
    (pixels,) = part.torch(64, seed=None, columns=["image"], images=5)
    assert (pixels["image"].dtype, pixels["image"].shape) == (torch.uint8, (len(part), 5, 5, 3))
    loader = torch.utils.data.DataLoader(part.torch(4, images=steps), batch_size=None, num_workers=1)
    assert [item["image"].shape[1:] for item in loader] == [(3, 6, 4)] * len(loader)


def test_a_part_s_broken_picture_is_named_by_its_row(photos):
    pytest.importorskip("torch")
    part = photos.part("ood_test")
    with pytest.raises(BadData, match=r"^row [0-9a-f]{16}: its image cannot be decoded") as refused:
        list(part.torch(8, images="PIL"))
    row = int(str(refused.value)[4:20], 16)
    assert part.select(part.row_ids == row).numpy(["image"])["image"][0] == picture_split.unreadable()
    with pytest.raises(FarshiftError, match="unknown step 'spin 9'"):
        part.torch(8, images="crop 8, spin 9")


@pytest.mark.slow
def test_a_hub_s_processor_is_one_file(weights, tmp_path, monkeypatch, python):
    """In a process of its own: the Hub's client reads its address once."""
    import tiny_hf

    with tiny_hf.model_hub(weights["resnet"]) as hub:
        code = "import farshift as fs; print(fs.processor('tiny/model'))"
        environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1"}
        done = python.run("-c", code, env=os.environ | environment)
        assert done.stdout.strip() == "processor of tiny/model", done.stderr
        assert {path.rpartition("/")[2] for path, _ in hub.requests if "/resolve/" in path} == {
            "preprocessor_config.json",
            "config.json",
        }
