"""Texts, pictures and sounds become features of a frozen encoder, each row once, the same as the encoder's own."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_hf
import tiny_vision
import torch
from encoded_files import folder as in_folder
from encoded_files import picture, sound
from farshift import FarshiftError
from farshift.baselines.encoding import frozen
from farshift.baselines.encoding.checkpoint import find_checkpoint
from farshift.baselines.encoding.frozen import FrozenColumns
from farshift.benchmarks.adapters._transformers import silence_transformers
from farshift.benchmarks.model import Task
from farshift.core.errors import BadData, ModelError
from farshift.loaders.batching.audio import read_samples
from PIL import Image

from .toys import words

pytest.importorskip("transformers")

READ = Task("classification", ("command",), "turn", classes=2)
SEEN = Task("classification", ("picture",), "shape", classes=2)
TEXTS = ["walk left twice", "run", "", "look right A B Q : ? . 0 1", "walk left twice", "jump jump"]
MOMENTS = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.5]}


def vision(folder: Path, kind: str = "vit", **said: Any) -> Path:
    """A tiny ViT or ResNet for 8 x 8 images in colour, its processor's file written beside it."""
    import transformers

    torch.manual_seed(0)
    if kind == "vit":
        shape = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
        network: Any = transformers.ViTModel(transformers.ViTConfig(image_size=8, patch_size=4, **shape))
    else:
        shape = {"embedding_size": 4, "hidden_sizes": [6, 10], "depths": [1, 1]}
        network = transformers.ResNetModel(transformers.ResNetConfig(layer_type="basic", **shape))
    with silence_transformers():
        network.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(MOMENTS | {"size": {"height": 8, "width": 8}} | said))
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("encoders")
    return {
        "bert": tiny_hf.classifier(home / "bert"),
        "gpt": tiny_hf.decoder(home / "gpt", pad=False),
        "t5": tiny_hf.encoder_decoder(home / "t5"),
        "vit": vision(home / "vit"),
        "resnet": vision(home / "resnet", "resnet"),
    }


def texts(values: list[str]) -> dict[str, Any]:
    return {"command": words(values), "turn": np.arange(len(values)) % 2}


def alone(folder: Path, text: str) -> np.ndarray[Any, Any]:
    """The mean of the last states over the tokens of one text."""
    from transformers import AutoModel, AutoTokenizer

    with silence_transformers(), torch.no_grad():
        network = AutoModel.from_pretrained(folder).eval()
        network = network.get_encoder() if network.config.is_encoder_decoder else network
        ids = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=16)["input_ids"]
        if not ids:
            return np.zeros(16, np.float32)
        return network(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(dim=0).numpy()


@pytest.mark.parametrize("kind", ["bert", "gpt", "t5"])
def test_a_texts_features_are_its_mean_last_state_whatever_is_read_beside_it(
    kind: str, folders: dict[str, Path]
) -> None:
    encoder = FrozenColumns(str(folders[kind]), READ, texts(TEXTS))
    given = encoder.columns(texts(TEXTS))
    assert given["command"].shape == (6, 16)
    assert given["command"].dtype == np.float32
    assert given["turn"].tolist() == [0, 1, 0, 1, 0, 1]
    for features, text in zip(given["command"], TEXTS, strict=True):
        assert np.allclose(features, alone(folders[kind], text), atol=1e-5)
    assert np.array_equal(given["command"][0], given["command"][4])
    assert not np.allclose(given["command"][0], given["command"][1], atol=1e-2)
    assert encoder.columns(texts([]))["command"].shape == (0, 16)


def test_a_text_over_the_window_is_truncated(folders: dict[str, Path]) -> None:
    encoder = FrozenColumns(str(folders["bert"]), READ, texts(TEXTS))
    long, cut = encoder.columns(texts(["walk " * 30, "walk " * 14]))["command"]
    assert np.allclose(long, cut, atol=1e-6)


@pytest.mark.usefixtures("cache")
def test_a_row_is_encoded_once_whoever_asks(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    frozen._load_encoder.cache_clear()
    encoder = FrozenColumns(str(folders["bert"]), READ, texts(TEXTS))
    requested: list[str] = []
    read = encoder._encoder._model.read
    monkeypatch.setattr(
        encoder._encoder._model, "read", lambda some, advance: (requested.extend(some), read(some, advance))[1]
    )
    first = encoder.columns(texts(TEXTS))
    again = FrozenColumns(str(folders["bert"]), READ, texts(TEXTS)).columns(texts([*TEXTS[::-1], "look"]))
    assert sorted(requested) == sorted({*TEXTS, "look"})
    assert np.array_equal(again["command"][:6], first["command"][::-1])


def pictures(*shape: int, most: int = 200) -> dict[str, Any]:
    return {
        "picture": np.random.default_rng(0).integers(0, most + 1, shape).astype(np.uint8),
        "shape": np.zeros(shape[0]),
    }


@pytest.mark.parametrize("kind", ["vit", "resnet"])
def test_an_images_features_are_the_mean_over_its_places(kind: str, folders: dict[str, Path]) -> None:
    from transformers import AutoModel

    rows = pictures(40, 8, 8, 3)
    rows["picture"][0, 0, 0, 0] = 200
    result = FrozenColumns(str(folders[kind]), SEEN, rows).columns(rows)["picture"]
    mean, deviation = (torch.tensor(MOMENTS[name]).view(3, 1, 1) for name in ("image_mean", "image_std"))
    with silence_transformers(), torch.no_grad():
        network = AutoModel.from_pretrained(folders[kind]).eval()
        for features, image in zip(result, rows["picture"], strict=True):
            pixels = (torch.from_numpy(image / np.float32(200)).permute(2, 0, 1).float() - mean) / deviation
            states = network(pixel_values=pixels[None]).last_hidden_state[0]
            expected = states.mean(dim=0) if kind == "vit" else states.mean(dim=(1, 2))
            assert np.allclose(features, expected.numpy(), atol=1e-5)


def test_grey_is_every_channel_and_a_missing_colour_is_none(folders: dict[str, Path]) -> None:
    def features(picture: np.ndarray[Any, Any]) -> Any:
        rows = {"picture": picture}
        return FrozenColumns(str(folders["vit"]), SEEN, rows).columns(rows)["picture"]

    grey = pictures(3, 8, 8)["picture"]
    assert np.allclose(features(grey), features(np.repeat(grey[..., None], 3, axis=-1)), atol=1e-6)
    two = pictures(3, 2, 8, 8)["picture"]
    assert np.allclose(features(two), features(np.stack([two[:, 0], two[:, 1], two[:, 0] * 0], axis=-1)), atol=1e-6)
    assert features(pictures(3, 5, 9)["picture"]).shape == (3, 12)
    with pytest.raises(ModelError, match="reads 3 channels"):
        features(pictures(3, 8, 8, 4)["picture"])


@pytest.mark.parametrize(
    "said",
    [
        {"size": 8},
        {"size": {"shortest_edge": 8}},
        {"size": {"shortest_edge": 9}, "crop_size": {"height": 8, "width": 8}},
    ],
)
def test_a_processors_size_is_understood_in_each_of_its_ways(
    said: dict[str, Any], folders: dict[str, Path], tmp_path: Path
) -> None:
    rows = pictures(3, 5, 9)
    expected = FrozenColumns(str(folders["vit"]), SEEN, rows).columns(rows)["picture"]
    assert np.array_equal(
        FrozenColumns(str(vision(tmp_path / "x", **said)), SEEN, rows).columns(rows)["picture"], expected
    )


def test_a_processor_that_does_not_normalise_is_heeded(tmp_path: Path) -> None:
    rows = pictures(3, 8, 8, 3)
    plain = vision(tmp_path / "plain", do_normalize=False)
    even = vision(tmp_path / "even", image_mean=[0, 0, 0], image_std=[1, 1, 1])
    result, expected = (FrozenColumns(str(folder), SEEN, rows).columns(rows)["picture"] for folder in (plain, even))
    assert np.array_equal(result, expected)


def test_brightness_is_measured_on_training_rows(folders: dict[str, Path]) -> None:
    bright = pictures(4, 8, 8, 3)
    dark = {"picture": (bright["picture"] // 20).astype(np.uint8)}
    encoder = FrozenColumns(str(folders["vit"]), SEEN, bright)
    own = FrozenColumns(str(folders["vit"]), SEEN, dark)
    assert not np.allclose(encoder.columns(dark)["picture"], own.columns(dark)["picture"], atol=1e-3)
    scaled = {"picture": dark["picture"] / np.float32(bright["picture"].max()) * np.float32(dark["picture"].max())}
    assert np.allclose(encoder.columns(dark)["picture"], own.columns(scaled)["picture"], atol=1e-5)


def test_other_inputs_are_left_as_they_are(folders: dict[str, Path]) -> None:
    task = Task("classification", ("command", "count", "place"), "turn", classes=2)
    rows = texts(TEXTS) | {"count": np.arange(6), "place": np.ones((6, 4, 4))}
    read = FrozenColumns(str(folders["bert"]), task, rows).columns(rows)
    assert read["count"] is rows["count"]
    assert read["place"] is rows["place"]
    assert read["command"].shape == (6, 16)


def test_a_digest_follows_the_weights(folders: dict[str, Path], tmp_path: Path) -> None:
    assert find_checkpoint(str(folders["vit"])).digest == find_checkpoint(str(folders["vit"])).digest
    assert find_checkpoint(str(vision(tmp_path / "same"))).digest == find_checkpoint(str(folders["vit"])).digest
    assert (
        find_checkpoint(str(vision(tmp_path / "other", do_normalize=False))).digest
        != find_checkpoint(str(folders["vit"])).digest
    )


def test_loading_draws_nothing_from_torchs_generator(folders: dict[str, Path]) -> None:
    frozen._load_encoder.cache_clear()
    before = torch.random.get_rng_state()
    FrozenColumns(str(folders["gpt"]), READ, texts(TEXTS)).columns(texts(TEXTS))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_task_that_an_encoder_cannot_read_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    turn = Task("sequence", ("command",), "actions")
    both = Task("classification", ("picture", "command"), "turn", classes=2)
    cases: list[tuple[str, Task, dict[str, Any], str]] = [
        ("bert", turn, texts(TEXTS), "this is a sequence task"),
        ("bert", SEEN, pictures(2, 8, 8), "reads texts, and this task has none: picture"),
        (
            "vit",
            SEEN,
            {"picture": np.zeros((2, 8))},
            r"reads images \(encoded, or arrays of two or three axes\), and this task has none",
        ),
        ("vit", both, pictures(6, 8, 8) | texts(TEXTS), "reads images.*, and the input 'command' is text"),
    ]
    for kind, task, rows, message in cases:
        with pytest.raises(ModelError, match=message):
            FrozenColumns(str(folders[kind]), task, rows)
    with pytest.raises(FarshiftError, match=r"has no config\.json"):
        FrozenColumns(str(tmp_path), READ, texts(TEXTS))


def test_a_folder_that_is_no_whole_encoder_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    bare = vision(tmp_path / "bare")
    (bare / "preprocessor_config.json").unlink()
    with pytest.raises(ModelError, match="has no preprocessor_config.json"):
        FrozenColumns(str(bare), SEEN, pictures(2, 8, 8))
    cut = vision(tmp_path / "cut")
    weights = load_file(cut / "model.safetensors")
    save_file({name: w for name, w in weights.items() if "layernorm" not in name}, cut / "model.safetensors")
    with pytest.raises(ModelError, match=r"lacks weights of a ViTModel: layernorm\.bias, layernorm\.weight"):
        FrozenColumns(str(cut), SEEN, pictures(2, 8, 8))


SEEN_FILES = Task("classification", ("image",), "kind", classes=2)
HEARD = Task("classification", ("audio",), "kind", classes=2)


def rows(files: list[bytes], name: str = "image") -> dict[str, Any]:
    return {name: words(files), "kind": np.arange(len(files)) % 2}


@pytest.fixture
def pacs(tmp_path: Path) -> list[bytes]:
    """Pictures as PACS has them: a folder for each domain and class, JPEGs beside PNGs, of several sizes and modes."""
    grey = io.BytesIO()
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(15, 20)).save(grey, "PNG")
    wide = io.BytesIO()
    Image.fromarray(np.random.default_rng(3).integers(0, 256, (9, 21, 3), np.uint8)).save(wide, "PNG")
    home = in_folder(
        tmp_path / "kfold",
        {
            "photo/dog/1.jpg": picture(1, side=20),
            "sketch/dog/2.png": grey.getvalue(),
            "art_painting/horse/3.png": wide.getvalue(),
            "cartoon/horse/4.jpg": picture(4, side=8),
        },
    )
    return [path.read_bytes() for path in sorted(home.rglob("*.*"))]


def resized(one: Image.Image, short: int) -> Image.Image:
    """The shorter side `short` pixels, the longer one in proportion."""
    width, height = one.size
    sides = (short, int(short * height / width)) if width < height else (int(short * width / height), short)
    return one.resize(sides, Image.Resampling.BICUBIC)


def cut(one: Image.Image, side: int) -> np.ndarray:
    pixels = np.asarray(one)
    top, left = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
    return pixels[top : top + side, left : left + side]


def by_hand(content: bytes, kind: str) -> torch.Tensor:
    """What a model's processor does, step by step with Pillow and NumPy."""
    item = Image.open(io.BytesIO(content)).convert("RGB")
    if kind == "vit":
        pixels = np.asarray(item.resize((8, 8), Image.Resampling.BILINEAR))
    elif kind in ("resnet", "convnext"):
        # Under 384 pixels ConvNeXT's processor resizes to size / crop_pct, then cuts the middle out.
        pixels = cut(resized(item, int(8 / 0.8)), 8)
    else:
        pixels = cut(resized(item, 10 if kind == "dinov2" else 9), 8)
    mean, deviation = (np.array(tiny_vision.MOMENTS[name]) for name in ("image_mean", "image_std"))
    return torch.from_numpy(((pixels / 255 - mean) / deviation).transpose(2, 0, 1)).float()


@pytest.mark.parametrize("kind", tiny_vision.SAID)
def test_a_pictures_features_are_those_of_the_models_own_size_crop_and_moments(
    kind: str, tmp_path: Path, pacs: list[bytes]
) -> None:
    encoder = FrozenColumns(str(tiny_vision.saved(tmp_path / kind, kind)), SEEN_FILES, rows(pacs))
    result = encoder.columns(rows(pacs))["image"]
    with silence_transformers(), torch.no_grad():
        network = tiny_vision.network(kind).eval()
        network = network.vision_model if kind == "clip" else network
        for features, content in zip(result, pacs, strict=True):
            states = network(pixel_values=by_hand(content, kind)[None]).last_hidden_state[0]
            expected = states.mean(dim=(1, 2)) if states.ndim == 3 else states.mean(dim=0)
            np.testing.assert_allclose(features, expected.numpy(), atol=1e-5)
    assert np.ptp(result, axis=0).max() > 1e-4


def test_a_picture_that_cannot_be_decoded_is_named(tmp_path: Path) -> None:
    encoder = FrozenColumns(str(tiny_vision.saved(tmp_path / "vit", "vit")), SEEN_FILES, rows([picture(1)]))
    with pytest.raises(BadData, match="image 1 of 3 cannot be decoded"):
        encoder.columns(rows([picture(1), picture(2)[:200], picture(3)]))


def test_a_sounds_features_are_the_mean_over_its_frames_at_the_models_rate(tmp_path: Path) -> None:
    files = [sound(0), sound(7), sound(300, rate=4000)]
    encoder = FrozenColumns(str(tiny_vision.sounds(tmp_path / "heard")), HEARD, rows(files, "audio"))
    result = encoder.columns(rows(files, "audio"))["audio"]
    from transformers import AutoModel

    with silence_transformers(), torch.no_grad():
        network = AutoModel.from_pretrained(tmp_path / "heard").eval()
        for features, content in zip(result, files, strict=True):
            heard = read_samples(content, 4000, "it")
            heard = np.pad(heard, (0, max(0, 10 - len(heard))))
            normal = (heard - heard.mean()) / np.sqrt(heard.var() + 1e-7)
            states = network(torch.from_numpy(normal)[None]).last_hidden_state[0]
            np.testing.assert_allclose(features, states.mean(dim=0).numpy(), atol=1e-5)
    assert result.shape == (3, 12)


def test_files_that_an_encoder_cannot_read_are_refused(tmp_path: Path) -> None:
    bert = tiny_hf.classifier(tmp_path / "bert")
    with pytest.raises(ModelError, match="reads texts, and the input 'image' is encoded files"):
        FrozenColumns(str(bert), SEEN_FILES, rows([picture(1)]))
    vit = tiny_vision.saved(tmp_path / "vit", "vit")
    with pytest.raises(ModelError, match="reads images.*and the input 'image' is text"):
        FrozenColumns(str(vit), SEEN_FILES, {"image": words(["walk", "run"])})
    heard = tiny_vision.sounds(tmp_path / "heard")
    encoder = FrozenColumns(str(heard), HEARD, rows([sound(0)], "audio"))
    with pytest.raises(BadData, match="recording 0 of 1 cannot be read as WAV"):
        encoder.columns(rows([picture(1)], "audio"))
