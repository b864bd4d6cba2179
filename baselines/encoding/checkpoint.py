"""Pretrained weights by their name: a network of `loaders/weights/`, a transformers model, or any torch module."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from ...benchmarks.adapters._transformers import ImageProcessor
from ...benchmarks.adapters.hugging_face import from_spec
from ...benchmarks.adapters.torch_module import load_state_dict
from ...benchmarks.harness.factory import find_model
from ...benchmarks.parsing import wrap_user_errors
from ...core.canonical import compute_identity
from ...core.errors import BadData, FarshiftError, ModelError
from ...core.files import compute_file_sha256
from ...core.plugins import load_module
from ...loaders.acquire.pretrained import TRANSFORMERS, PretrainedNetwork, find_pretrained_network
from ...loaders.batching.transform import Transform


def _import_library(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise FarshiftError(f"weights {name}:..: the package {package} cannot be imported: pip install it") from error


def _describe(resize: int, interpolation: str, crop: int, mean: Iterable[float], deviation: Iterable[float]) -> str:
    moments = " / ".join(" ".join(f"{float(value):.17f}" for value in values) for values in (mean, deviation))
    return f"resize {resize} {interpolation}, crop {crop}, normalise {moments}"


def _load_timm(name: str) -> tuple[nn.Module, str]:
    """A network of timm without its head, with the preprocessing of its weights."""
    timm = _import_library("timm", "timm")
    with wrap_user_errors(f"loading timm:{name}"):
        module = timm.create_model(name, pretrained=True, num_classes=0)
        data = timm.data.resolve_model_data_config(module)
    side = data["input_size"][-1]
    resize = int(side / data["crop_pct"])
    return module, _describe(resize, data["interpolation"], side, data["mean"], data["std"])


def _load_open_clip(name: str) -> tuple[nn.Module, str]:
    """The image encoder of a CLIP model."""
    library = _import_library("open_clip", "open-clip-torch")
    architecture, _, tag = name.partition("@")
    with wrap_user_errors(f"loading open_clip:{name}"):
        tags = library.list_pretrained_tags_by_model(architecture)
        if (tag or not tags) and tag not in tags:
            raise FarshiftError(f"open_clip:{name}: name its weights, NAME@{'|'.join(tags) or 'PRETRAINED'}")
        visual = library.create_model(architecture, pretrained=tag or tags[0]).visual
    side = visual.image_size if isinstance(visual.image_size, int) else visual.image_size[0]
    return visual, _describe(side, "bicubic", side, visual.image_mean, visual.image_std)


def _load_torchvision(name: str) -> tuple[nn.Module, str]:
    """A classifier of torchvision with its default weights, without its last layer."""
    models = _import_library("torchvision.models", "torchvision")
    with wrap_user_errors(f"loading torchvision:{name}"):
        weights = models.get_model_weights(name).DEFAULT
        module, preset = models.get_model(name, weights=weights), weights.transforms()
    last = [key for key, _ in module.named_children()][-1]
    setattr(module, last, nn.Identity())
    return module, _describe(
        preset.resize_size[0], preset.interpolation.value, preset.crop_size[0], preset.mean, preset.std
    )


LIBRARIES: Mapping[str, Callable[[str], tuple[nn.Module, str]]] = MappingProxyType(
    {"open_clip": _load_open_clip, "timm": _load_timm, "torchvision": _load_torchvision}
)
"""By the scheme of a name, the function that loads a network and its preprocessing (`Transform`)."""


_OWN = re.compile(r"(?P<file>.+\.py):[^\W\d]\w*")


@dataclass(frozen=True)
class FolderCheckpoint:
    """A model folder of transformers. digest: of its weights, tokenizer and processor."""

    name: str
    digest: str
    folder: Path = field(compare=False)

    def make_processor(self) -> ImageProcessor:
        """The processor of encoded images."""
        return ImageProcessor(self.folder)


@dataclass(frozen=True)
class ModuleCheckpoint:
    """A torch module that reads images. digest: of its weights and preprocessing. build: makes the module, from
    normalised images to features (n, width), or to maps (n, width, height, width of the map)."""

    name: str
    digest: str
    transform: Transform
    build: Callable[[], nn.Module] = field(compare=False)

    def load_model(self) -> ImageModule:
        """The module as transformers calls a vision model; torch's generators are left unchanged."""
        with torch.random.fork_rng(devices=[]):
            return ImageModule(self.build(), self.name, self.transform.size)

    def make_processor(self) -> Transform:
        """The processor of encoded images."""
        return self.transform


Checkpoint = FolderCheckpoint | ModuleCheckpoint


class ImageModule(nn.Module):
    """A module from normalised images to features, called as a vision model of transformers."""

    main_input_name = "pixel_values"
    _location: Tensor

    def __init__(self, module: nn.Module, name: str, size: tuple[int, int]) -> None:
        super().__init__()
        self.module = module.float().cpu()
        self.config = SimpleNamespace(num_channels=3)
        self.register_buffer("_location", torch.empty(0), persistent=False)  # a module may have no parameters
        with torch.no_grad():
            features = self.module.eval()(torch.zeros(1, 3, *size))
        if not isinstance(features, Tensor) or features.ndim not in (2, 4) or len(features) != 1:
            given = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
            raise ModelError(f"weights {name}: an image of {size} gives {given}: return features (n, width)")
        self.config.hidden_size = features.shape[1]

    @property
    def device(self) -> torch.device:
        return self._location.device

    def forward(self, pixel_values: Tensor) -> Any:
        features: Tensor = self.module(pixel_values)
        return SimpleNamespace(last_hidden_state=features[:, None] if features.ndim == 2 else features)


def find_checkpoint(spec: str) -> Checkpoint:
    """The weights of a specification: a name of `farshift baselines networks`, `FILE.py:build`, `timm:NAME` and other
    libraries, `org/name[@revision]` of the Hub, or `./folder`. Downloads missing files.

    Raises `MissingExtra` without the library, `Unavailable` if no mirror or the Hub does not provide the files,
    `FarshiftError` for a folder without a model, `ModelError` for a function that returns something else."""
    if (network := find_pretrained_network(spec)) is not None:
        return _find_shipped(network)
    library, _, name = spec.partition(":")
    if name and library in LIBRARIES:
        return _find_module(spec, spec)
    if match := _OWN.fullmatch(spec):
        file = Path(match["file"]).expanduser()
        return _find_module(spec, compute_file_sha256(file) if file.is_file() else "")
    location = from_spec(spec, {})
    return FolderCheckpoint(location.name, location.code, location.folder)


def find_folder(spec: str) -> FolderCheckpoint:
    """The weights of a specification if they are a model of transformers; else `ModelError`."""
    checkpoint = find_checkpoint(spec)
    if isinstance(checkpoint, ModuleCheckpoint):
        raise ModelError(f"weights {checkpoint.name} read images, and this needs a model of transformers")
    return checkpoint


def _find_shipped(network: PretrainedNetwork) -> Checkpoint:
    paths = network.fetch()
    if network.architecture == TRANSFORMERS:
        return FolderCheckpoint(network.name, network.digest, _link_files(network.digest, paths))
    build = partial(_build_shipped, network, *paths.values())
    return ModuleCheckpoint(network.name, network.digest, Transform(network.preprocessing), build)


_linked: dict[str, tempfile.TemporaryDirectory[str]] = {}


def _link_files(digest: str, paths: Mapping[str, Path]) -> Path:
    """A folder in which files of the cache have the names that transformers expects, removed when the process ends."""
    if digest not in _linked:
        folder = tempfile.TemporaryDirectory(prefix="farshift-")
        for name, path in paths.items():
            (Path(folder.name) / name).symlink_to(path)
        from_spec(folder.name, {})  # for its checks
        _linked[digest] = folder
    return Path(_linked[digest].name)


def _build_shipped(network: PretrainedNetwork, path: Path) -> nn.Module:
    """The network of one weights file, without its last layer."""
    module = load_module("baselines/backbones", network.architecture, "architecture").build(**network.options)
    (pin,) = network.files
    state: dict[str, Any] = load_state_dict(path, pin.name)
    state = {name.removeprefix("module."): value for name, value in state.get("state_dict", state).items()}
    try:
        module.load_state_dict({module.rename(name): value for name, value in state.items()})
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise BadData(f"{pin.name} does not fit {network.architecture}: {reason}") from error
    module.head = nn.Identity()
    return module  # type: ignore[no-any-return]


@lru_cache(maxsize=4)
def _find_module(spec: str, code: str) -> ModuleCheckpoint:
    """The module of a library, or of the user's function whose file has the digest `code`."""
    library, _, name = spec.partition(":")

    def build() -> tuple[nn.Module, str]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # a module without weights of its own is the same in each process
            if library in LIBRARIES:
                return LIBRARIES[library](name)
            function = find_model(spec)[0]
            with wrap_user_errors(f"weights {spec}"):
                value = function()
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], nn.Module):
            return value
        raise ModelError(
            f"weights {spec}: the function returned a {type(value).__name__}: return a torch module and its "
            "preprocessing, such as 'resize 256, crop 224, normalise imagenet'"
        )

    module, preprocessing = build()
    state = sha256()
    for key, value in module.state_dict().items():
        state.update(f"{key} {value.dtype} {tuple(value.shape)}".encode())
        state.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    digest = compute_identity({"code": code, "weights": state.hexdigest(), "preprocessing": preprocessing})
    return ModuleCheckpoint(
        spec if library in LIBRARIES else Path(spec).name, digest, Transform(preprocessing), lambda: build()[0]
    )
