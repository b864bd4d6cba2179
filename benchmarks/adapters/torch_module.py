"""A plain `torch.nn.Module` as a model: one tensor per input, in the task's order; logits or numbers out."""

from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.canonical import compute_identity
from ...core.draws import derive_key
from ...core.errors import FarshiftError, MissingExtra, ModelError, get_first_line
from ...core.files import compute_file_sha256
from ...loaders.batching.encoded import is_audio, is_encoded
from ...loaders.batching.input_format import InputFormat
from ..answers import Answers
from ..model import Budget, Columns, Model, Task, TrainingRows
from . import Options, read_options

if TYPE_CHECKING:
    import torch

SCHEME = "torch"


def adapt(thing: Any, task: Task, seed: int) -> Model | None:
    """Return a model for a `torch.nn.Module` without a method `predict`. Does not import torch.

    The module is copied with its weights, and predicts on the device that it is on (or is moved to by `to`). A module
    with `fit(train, val, budget)` is trained first, on the budget's device, starting from its weights; the seed sets
    torch's generators during training. For other initial weights with each seed give a factory instead.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(thing, torch.nn.Module) or hasattr(thing, "predict"):
        return None
    try:
        module = copy.deepcopy(thing)
    except RuntimeError as error:
        raise ModelError(
            f"the torch module {type(thing).__name__} cannot be copied ({get_first_line(error, 200)}): "
            "give a factory that returns it"
        ) from error
    return TrainableModule(module, task, seed) if hasattr(module, "fit") else ModuleModel(module, task)


class ModuleModel:
    """Predicts with a module. Input columns become tensors, passed by position: floats as float32, integers and
    booleans as int64, pixels (uint8 of more than one dimension) as float32 with values 0 .. 255: the module does the
    scaling. Encoded images come in the format that the module's attribute `images` requests: a side in pixels (uint8 as
    above) or a transform.

    Classification: the module returns logits (n, classes); scores are their softmax. Multilabel: logits (n, classes),
    which are the scores. Regression: numbers (n,) or (n, 1).
    """

    def __init__(self, module: torch.nn.Module, task: Task) -> None:
        if task.in_text:
            what = "texts" if task.type == "sequence" else "boxes"
            raise ModelError(
                f"the torch module {type(module).__name__} returns tensors, and this is a {task.type} task: "
                f"wrap it in an object whose predict returns {what}"
            )
        self.module, self.task, self.forms = module, task, InputFormat.of(module)

    def to(self, device: str) -> None:
        """Move the module to the device that the user chose."""
        self.module.to(device)

    def predict(self, batch: Columns) -> Answers:
        """Return predictions for a batch of n rows; `ModelError` if the module's output does not fit the task."""
        import torch

        first = next(itertools.chain(self.module.parameters(), self.module.buffers()), None)
        device = torch.device("cpu") if first is None else first.device
        tensors = [_to_tensor(name, batch[name]).to(device) for name in self.task.inputs]
        with torch.no_grad():
            output = self.module.eval()(*tensors)
        return self._answers(output, len(batch[self.task.inputs[0]]))

    def _answers(self, output: Any, rows: int) -> Answers:
        import torch

        numbers = self.task.type == "regression"
        expected_shapes = [(rows,), (rows, 1)] if numbers else [(rows, self.task.classes)]
        given = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
        if given not in expected_shapes or not output.is_floating_point():
            dtype = f" of {output.dtype}" if isinstance(output, torch.Tensor) else ""
            raise ModelError(
                f"the torch module {type(self.module).__name__} returned {given}{dtype}, expected "
                f"{' or '.join(map(str, expected_shapes))} {'numbers' if numbers else 'logits'}"
            )
        if numbers:
            return Answers.all_given(output.reshape(rows).double().cpu().numpy())
        if self.task.type == "multilabel":
            logits = output.float().cpu().numpy()
            return Answers.all_given((logits > 0).sum(axis=1), logits)
        scores = output.double().softmax(dim=1).cpu().numpy()
        return Answers.all_given(scores.argmax(axis=1), scores.astype(np.float32))


class TrainableModule(ModuleModel):
    """A module with its own `fit`."""

    def __init__(self, module: torch.nn.Module, task: Task, seed: int) -> None:
        super().__init__(module, task)
        self.seed = seed

    def fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget) -> object:
        """Train the module with its own `fit`, on the budget's device; torch's global generators are restored."""
        import torch

        self.module.to(budget.device)
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(derive_key(f"torch_module/{self.seed}"))
            return self.module.fit(train, val, budget)  # type: ignore[operator]


def _to_tensor(name: str, values: Any) -> torch.Tensor:
    import torch

    if values.dtype == object:
        if is_encoded(values) and not is_audio(values):
            raise ModelError(
                f"input {name!r} is encoded images: set the module's attribute `images` to a side in pixels (224) or a "
                "transform ('imagenet')"
            )
        raise ModelError(
            f"input {name!r} is text or audio, and a torch module reads only numbers: wrap it in an object whose "
            "predict encodes it"
        )
    is_pixels = values.dtype == np.uint8 and values.ndim > 1
    kind = np.float32 if is_pixels or values.dtype.kind == "f" else np.int64
    return torch.from_numpy(np.array(values, kind))


def from_spec(rest: str, options: Mapping[str, str]) -> TorchFactory:
    """Return the factory of `torch:weights.pt@file.py:factory`: `factory` returns the module (it may have the arguments
    `seed`, `task` and `device`), the file has its weights: a state dict written by `torch.save` or safetensors. Nothing
    else is unpickled. No options. Raises `FarshiftError` if one of the files is missing."""
    from ..harness.factory import find_model

    weights, _, factory_spec = rest.rpartition("@")
    if not weights:
        raise FarshiftError(f"model torch:{rest}: write it as torch:weights.pt@file.py:factory")
    read_options(Options, SCHEME, options)
    path = Path(weights).expanduser()
    if not path.is_file():
        raise FarshiftError(f"weights file {path} does not exist")
    make, code = find_model(factory_spec)
    return TorchFactory(path, make, code)


class TorchFactory:
    """Makes a module and loads its weights. `code` is a digest of both files."""

    def __init__(self, weights: Path, make: Any, code: str) -> None:
        self.weights, self.make = weights, make
        self.name = weights.stem
        self.code = compute_identity({"weights": compute_file_sha256(weights), "module": code})

    def __call__(self, seed: int, task: Task, device: str, prompt: object = None) -> Model:
        try:
            import torch  # noqa: F401
        except ImportError as error:
            raise MissingExtra("a torch module", "train") from error
        from ..harness.factory import make_factory

        model = make_factory(self.make, task, device)(seed, {})
        if not isinstance(model, ModuleModel):
            raise ModelError(
                f"the factory for {self.weights} returned a {type(model).__name__}: weights are loaded into a plain "
                "torch.nn.Module without a method predict"
            )
        module = model.module
        try:
            module.load_state_dict(load_state_dict(self.weights))
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:300]
            raise ModelError(f"weights file {self.weights} does not fit {type(module).__name__}: {reason}") from error
        # With its weights it is already trained, so `fit` is not called.
        return ModuleModel(module.to(device), task)


def load_state_dict(path: Path, name: str = "") -> dict[str, torch.Tensor]:
    """Read the tensors of a weights file by name, on the CPU; `ModelError` if it has anything else. `name`: the file's
    own, if it is stored under another: it tells safetensors."""
    advice = "save only module.state_dict() in it"
    try:
        state = _read_weights_file(path, name or path.name)
    except (FarshiftError, MemoryError):
        raise
    except OSError as error:  # an error of the disk, not of the content
        raise ModelError(f"weights file {path} cannot be opened: {get_first_line(error)}") from error
    except Exception as error:  # an unknown or truncated file may raise anything
        raise ModelError(
            f"weights file {path} cannot be read as plain tensors ({type(error).__name__}): {advice}"
        ) from error
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise ModelError(f"weights file {path} has a {type(state).__name__}, not a state dict: {advice}")
    return state


def _read_weights_file(path: Path, name: str) -> Any:
    import torch

    if not name.endswith(".safetensors"):
        return torch.load(path, map_location="cpu", weights_only=True)
    try:
        from safetensors.torch import load_file
    except ImportError as error:
        raise MissingExtra("a .safetensors file", "hf") from error
    return load_file(path)
