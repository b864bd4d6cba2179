"""Pretrained networks by name: pinned as sources are, fetched once, read by their own preprocessing."""

import io
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny_hf
import torch
from encoded_files import picture
from farshift import FarshiftError
from farshift.baselines.backbones import cifar_resnet
from farshift.baselines.encoding import frozen
from farshift.baselines.encoding.checkpoint import ModuleCheckpoint, find_checkpoint
from farshift.baselines.encoding.frozen import FrozenColumns
from farshift.baselines.running.plan import describe_weights, format_weights_name
from farshift.benchmarks.model import Task
from farshift.core.errors import BadData, BadDefinition, ModelError, Unavailable
from farshift.loaders.acquire.pretrained import find_pretrained_network
from farshift.loaders.batching.transform import Transform
from servers import Site, web
from torch import Tensor, nn

from .toys import Rows, recipe, trained, words

SEEN = Task("classification", ("picture",), "shape", classes=2)
STEPS = "resize 40, crop 32, normalise 0.5 / 0.2 0.25 0.3"


def tiny() -> nn.Module:
    """A residual network of eight layers with seeded weights and moments."""
    torch.manual_seed(0)
    module = cifar_resnet.build(depth=8, classes=3)
    for name, buffer in module.named_buffers():
        if name.endswith("running_var"):
            buffer.uniform_(0.5, 2.0)
    return module.eval()


def released(module: nn.Module) -> dict[str, Tensor]:
    """Its tensors by the names that released code gives them, as a parallel training saves them."""
    names = {"head.": "linear."} | {f"blocks.{n}.": f"layer{n + 1}.0." for n in range(3)}
    state = {}
    for name, value in module.state_dict().items():
        start = next((start for start in names if name.startswith(start)), "")
        state[f"module.{names.get(start, '')}{name.removeprefix(start)}"] = value
    return {"state_dict": state, "best": 91.5}  # type: ignore[dict-item]


def saved(thing: Any) -> bytes:
    file = io.BytesIO()
    torch.save(thing, file)
    return file.getvalue()


def define(home: Path, stem: str, site: Site, files: dict[str, bytes], **said: str) -> None:
    """Write the definition of a network whose files are on a server."""
    site.files |= {f"/{stem}/{file}": content for file, content in files.items()}
    facts = {"name": stem, "title": "A tiny network", "licence": "CC0-1.0", "citation": "none", "homepage": "none"}
    facts |= {"trained_on": "noise", "architecture": "cifar_resnet", "preprocessing": STEPS} | said
    lines = [f'{key} = "{value}"' for key, value in facts.items()]
    lines += ["options = { depth = 8, classes = 3 }"] if facts["architecture"] == "cifar_resnet" else []
    for file, content in files.items():
        lines += [
            "[[files]]",
            f'name = "{file}"',
            f'sha256 = "{sha256(content).hexdigest()}"',
            f"bytes = {len(content)}",
        ]
        lines += [f'mirrors = [{{ sort = "https", url = "{site.url}/{stem}/{file}" }}]']
    path = home / "loaders" / "weights" / f"{stem}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def home(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    frozen._load_encoder.cache_clear()
    return tmp_path


@pytest.fixture
def site() -> Iterator[Site]:
    with web() as served:
        yield served


def rows(count: int = 5) -> dict[str, Any]:
    files = np.array([picture(number, side=20 + number) for number in range(count)], object)
    return {"picture": files, "shape": np.arange(count) % 2}


def expected(module: nn.Module, files: Any) -> np.ndarray[Any, Any]:
    """The features before the last layer, of files by the network's own preprocessing."""
    module.head = nn.Identity()
    with torch.no_grad():
        return module(torch.from_numpy(Transform(STEPS).pixels(files))).numpy()


def test_a_network_is_fetched_once_and_read_by_its_own_preprocessing(home: Path, site: Site) -> None:
    define(home, "tiny", site, {"tiny.th": saved(released(tiny()))})
    given = rows()
    features = FrozenColumns("tiny", SEEN, given).columns(given)["picture"]
    assert features.shape == (5, 64)
    assert np.allclose(features, expected(tiny(), given["picture"]), atol=1e-5)
    frozen._load_encoder.cache_clear()
    assert np.array_equal(FrozenColumns("tiny", SEEN, given).columns(given)["picture"], features)
    assert [path for path, _ in site.requests] == ["/tiny/tiny.th"]


def test_images_as_arrays_are_resized_to_the_networks_size(home: Path, site: Site) -> None:
    define(home, "tiny", site, {"tiny.th": saved(released(tiny()))})
    arrays = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    arrays[0, 0, 0, 0] = 255
    given = {"picture": arrays, "shape": np.zeros(3)}
    features = FrozenColumns("tiny", SEEN, given).columns(given)["picture"]
    mean, deviation = Transform(STEPS).moments
    module = tiny()
    module.head = nn.Identity()
    pixels = torch.from_numpy(((arrays / np.float32(255) - mean) / deviation).transpose(0, 3, 1, 2).copy())
    with torch.no_grad():
        assert np.allclose(features, module(pixels).numpy(), atol=1e-5)


class Planted:
    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('unpickled')",))


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (lambda: saved({"state_dict": {"a": Planted()}}), ModelError, "cannot be read as plain tensors"),
        (lambda: saved({"state_dict": dict(list(released(tiny())["state_dict"].items())[1:])}), BadData, "Missing key"),
        (lambda: saved(tiny().state_dict() | {"more": torch.zeros(1)}), BadData, "does not fit cifar_resnet"),
    ],
)
def test_a_file_with_other_than_the_networks_tensors_is_refused(
    home: Path, site: Site, content: Any, error: type[Exception], message: str
) -> None:
    define(home, "tiny", site, {"tiny.th": content()})
    with pytest.raises(error, match=message) as raised:
        FrozenColumns("tiny", SEEN, rows())
    assert "\n" not in str(raised.value)


def test_other_bytes_are_not_the_network(home: Path, site: Site) -> None:
    define(home, "tiny", site, {"tiny.th": saved(released(tiny()))})
    site.files["/tiny/tiny.th"] = bytes(len(site.files["/tiny/tiny.th"]))
    with pytest.raises(Unavailable, match=r"returned another file .*FARSHIFT_MIRRORS"):
        find_checkpoint("tiny")


def test_the_digest_is_of_weights_and_preprocessing_and_the_card_says_what_they_were_trained_on(
    home: Path, site: Site
) -> None:
    define(home, "tiny", site, {"tiny.th": saved(released(tiny()))})
    define(home, "wide", site, {"tiny.th": saved(released(tiny()))}, preprocessing="resize 32x32")
    first, second = (find_pretrained_network(name) for name in ("tiny", "wide"))
    assert first is not None and second is not None
    assert first.digest != second.digest
    assert describe_weights(["tiny"]) == [{"name": "tiny", "digest": first.digest, "trained_on": "noise"}]


@pytest.mark.parametrize(
    ("said", "message"),
    [({"preprocessing": ""}, "exactly one file, and preprocessing"), ({"name": "other"}, "must be that of its file")],
)
def test_a_definition_without_preprocessing_or_under_another_name_is_refused(
    home: Path, site: Site, said: dict[str, str], message: str
) -> None:
    define(home, "tiny", site, {"tiny.th": b"x"}, **said)
    with pytest.raises(BadDefinition, match=message):
        find_checkpoint("tiny")


def test_a_transformers_model_by_name_gives_the_features_of_its_folder(home: Path, site: Site) -> None:
    pytest.importorskip("transformers")
    bert = tiny_hf.classifier(home / "bert")
    files = {path.name: path.read_bytes() for path in bert.iterdir()}
    define(home, "sentences", site, files, architecture="transformers", preprocessing="")
    task = Task("classification", ("command",), "turn", classes=2)
    given = {"command": words(["walk left twice", "run", ""]), "turn": np.arange(3) % 2}
    named = FrozenColumns("sentences", task, given).columns(given)["command"]
    assert np.array_equal(named, FrozenColumns(str(bert), task, given).columns(given)["command"])
    assert find_checkpoint("sentences").digest != find_checkpoint(str(bert)).digest


OWN = """
import torch
from torch import nn

def build():
    torch.manual_seed({seed})
    return nn.Sequential(nn.Conv2d(3, 6, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()), "resize 16x12"

def bare():
    return build()[0]

def wide():
    return nn.Flatten(0), "resize 16x16"

def fails():
    raise ValueError("no weights here")
"""


def test_any_module_of_the_users_own_is_an_encoder(home: Path) -> None:
    (home / "own.py").write_text(OWN.format(seed=3))
    given = rows()
    features = FrozenColumns("own.py:build", SEEN, given).columns(given)["picture"]
    assert features.shape == (5, 6)
    checkpoint = find_checkpoint("own.py:build")
    assert isinstance(checkpoint, ModuleCheckpoint)
    with torch.no_grad():
        pixels = torch.from_numpy(Transform("resize 16x12").pixels(given["picture"]))
        assert np.allclose(features, checkpoint.build().eval()(pixels).numpy(), atol=1e-6)
    assert format_weights_name("./own.py:build") == "own.py:build"
    digest = find_checkpoint("own.py:build").digest
    (home / "own.py").write_text(OWN.format(seed=4))
    assert find_checkpoint("own.py:build").digest != digest


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("own.py:bare", "returned a Sequential: return a torch module and its preprocessing"),
        ("own.py:wide", r"gives \(768,\): return features"),
        ("own.py:fails", "raised ValueError: no weights here"),
        ("own.py:builds", "no attribute of own.py named 'builds'"),
        ("absent.py:build", "absent.py does not exist"),
        ("timm:resnet18", "the package timm cannot be imported"),
    ],
)
def test_a_module_that_cannot_be_used_is_refused_in_one_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, spec: str, message: str
) -> None:
    (home / "own.py").write_text(OWN.format(seed=3))
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(FarshiftError, match=message) as raised:
        FrozenColumns(spec, SEEN, rows())
    assert "\n" not in str(raised.value)


def pool(name: str, **_: Any) -> nn.Module:
    module = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 4))
    module.image_mean, module.image_std, module.image_size = (0.5,) * 3, (0.2,) * 3, (24, 24)  # type: ignore[assignment]
    return module


def libraries() -> dict[str, ModuleType]:
    """As much of other packages as loads a network, under their names."""
    crop = {"input_size": (3, 24, 24), "crop_pct": 0.875, "interpolation": "bicubic", "mean": (0.5,) * 3}
    timm, vision, clip = (ModuleType(name) for name in ("timm", "torchvision.models", "open_clip"))
    vars(timm).update(
        create_model=pool, data=SimpleNamespace(resolve_model_data_config=lambda _: crop | {"std": (0.2,) * 3})
    )
    preset = SimpleNamespace(
        resize_size=[28], crop_size=[24], mean=[0.5] * 3, std=[0.2] * 3, interpolation=SimpleNamespace(value="bicubic")
    )
    weights = SimpleNamespace(DEFAULT=SimpleNamespace(transforms=lambda: preset))
    vars(vision).update(get_model=pool, get_model_weights=lambda _: weights)
    vars(clip).update(
        create_model=lambda name, pretrained: SimpleNamespace(visual=pool(name)),
        list_pretrained_tags_by_model=lambda _: ["first", "second"],
    )
    return {"timm": timm, "torchvision.models": vision, "open_clip": clip}


@pytest.mark.parametrize(
    ("spec", "width", "steps"),
    [
        ("timm:tiny", 4, "resize 27 bicubic, crop 24"),
        ("torchvision:tiny", 12, "resize 28 bicubic, crop 24"),
        ("open_clip:tiny", 4, "resize 24 bicubic, crop 24"),
        ("open_clip:tiny@second", 4, "resize 24 bicubic, crop 24"),
    ],
)
def test_networks_of_other_packages_come_with_their_preprocessing(
    home: Path, monkeypatch: pytest.MonkeyPatch, spec: str, width: int, steps: str
) -> None:
    for name, module in libraries().items():
        monkeypatch.setitem(sys.modules, name, module)
    given = rows()
    assert FrozenColumns(spec, SEEN, given).columns(given)["picture"].shape == (5, width)
    checkpoint = find_checkpoint(spec)
    assert isinstance(checkpoint, ModuleCheckpoint)
    assert checkpoint.transform.text.startswith(f"{steps}, normalise 0.5")
    assert np.allclose(checkpoint.transform.moments, [[0.5] * 3, [0.2] * 3])


@pytest.mark.parametrize("algorithm", ["erm", "coral", "miro"])
def test_a_network_by_name_is_trained_further(home: Path, site: Site, algorithm: str) -> None:
    define(home, "tiny", site, {"tiny.th": saved(released(tiny()))})
    arrays = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3)).astype(np.uint8)
    given = Rows(picture=arrays, shape=np.arange(12) % 2, group=np.arange(12) % 3)
    built = recipe("pretrained", 3, algorithm, weights="tiny", lr=1e-2, batch_size=4)
    answers = trained(built, SEEN, given).predict(given.only("picture"))
    assert answers.scores.shape == (12, 2)
    assert np.isfinite(answers.scores).all()
    assert not np.allclose(answers.scores, 0.5), "the head is no longer zero"


def test_settings_for_texts_and_clip_are_refused_of_a_module(home: Path, site: Site) -> None:
    define(home, "tiny", site, {"tiny.th": saved(released(tiny()))})
    given = Rows(picture=np.zeros((4, 32, 32, 3), np.uint8), shape=np.arange(4) % 2)
    named = Task("classification", ("picture",), "shape", classes=2, names=("round", "square"))
    with pytest.raises(ModelError, match="weights tiny read images, and this needs a model of transformers"):
        trained(recipe("pretrained", 1, weights="tiny", head="zero-shot"), named, given)
