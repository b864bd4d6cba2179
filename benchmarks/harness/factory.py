"""Making models: from a user's object, estimator or factory to a new model per seed; and the object or factory that the
command line names: `scheme:rest` for an adapter, or the user's own code, `file.py:factory` or
`package.module:attribute`."""

from __future__ import annotations

import ast
import copy
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from ...core.canonical import compute_identity
from ...core.errors import BadDefinition, FarshiftError, ModelError, UnknownName
from ...core.files import compute_file_sha256
from ...core.plugins import find_files_by_name, load_module
from ..adapters import adapt_model
from ..model import Model, Task
from ..parsing import wrap_user_errors
from ..prompting.prompt import Prompt

Factory = Callable[[int, Mapping[str, Any]], Model]
"""A function from a seed and a setting's values to a new model."""


def make_factory(model: Any, task: Task, device: str = "cpu", prompt: Prompt | None = None) -> Factory:
    """Return a function from (seed, setting) to a new model. `ModelError` for an object of another kind."""
    offered = {"task": task, "device": device, "prompt": prompt}

    def make(seed: int, setting: Mapping[str, Any]) -> Model:
        is_estimator = not isinstance(model, type) and hasattr(model, "set_params") and hasattr(model, "get_params")
        configured = _apply_setting(model, setting) if is_estimator else model
        adapted_model: Model | None = adapt_model(configured, task, seed)
        if adapted_model is not None:
            if device != "cpu" and hasattr(adapted_model, "to"):
                adapted_model.to(device)
            return adapted_model
        if isinstance(model, type) or not hasattr(model, "predict"):
            return _make_model(model, {"seed": seed, **offered}, setting, task, seed)
        if setting:
            raise ModelError(f"a {type(model).__name__} does not accept settings: give a factory that does")
        ready: Model = copy.deepcopy(model) if hasattr(model, "fit") else model
        return ready

    if not callable(model) and not hasattr(model, "predict") and adapt_model(model, task, 0) is None:
        raise ModelError(f"the model is of type {type(model).__name__}: it has no predict and cannot be called")
    return make


def _apply_setting(estimator: Any, setting: Mapping[str, Any]) -> Any:
    """Copy an estimator and set a setting's values; the user's estimator is not changed."""
    if not setting:
        return estimator
    known = estimator.get_params(deep=True)
    for name in setting:
        if name not in known:
            raise ModelError(f"{type(estimator).__name__} has no parameter {name!r}")
    return copy.deepcopy(estimator).set_params(**setting)


def _make_model(
    make: Callable[..., Any], offered: dict[str, Any], setting: Mapping[str, Any], task: Task, seed: int
) -> Model:
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):
        parameters = inspect.signature(lambda: None).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for name in setting:
        if name in offered:
            raise ModelError(f"{name!r} is set by the harness and cannot be in a setting")
        if not open_ended and name not in parameters:
            raise ModelError(f"the factory has no argument {name!r}, which is in a setting")
    instance = make(
        **{key: value for key, value in (offered | dict(setting)).items() if open_ended or key in parameters}
    )
    ready = adapt_model(instance, task, seed) or instance
    if not isinstance(ready, Model):
        raise ModelError(f"the factory returned a {type(instance).__name__}, which has no predict")
    return ready


def get_model_name(model: Any) -> str:
    """Return a name for the run card: the function's, class's or object's name, or a pipeline's steps."""
    if isinstance(own := getattr(model, "name", None), str) and own:
        return own[:100]
    steps = getattr(model, "steps", None)
    if isinstance(steps, list) and steps and all(isinstance(step, tuple) and len(step) == 2 for step in steps):
        return "+".join(type(step).__name__ for _, step in steps)[:100]
    return str(getattr(model, "__name__", None) or type(model).__name__)


NO_OPTIONS: Mapping[str, str] = MappingProxyType({})

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def find_model(name: str, options: Mapping[str, str] = NO_OPTIONS) -> tuple[Any, str]:
    """Return the object or factory of `name`, and a digest of the code that determines its predictions.

    `scheme:rest` goes to the adapter of that scheme, with the options. Anything else is the user's own code, which has
    no options. `FarshiftError`, in one line, if it does not exist.
    """
    adapters = load_schemes()
    scheme, _, rest = name.partition(":")
    if scheme in adapters:
        factory = adapters[scheme].from_spec(rest, options)
        return factory, factory.code
    source, _, attribute = name.rpartition(":")
    if not attribute or not (source.endswith(".py") or _DOTTED.fullmatch(source)):
        if rest and _DOTTED.fullmatch(scheme):
            raise UnknownName("kind of model", scheme, adapters)
        spelled = ", ".join(f"{scheme}:.." for scheme in adapters)
        raise FarshiftError(f"model {name!r}: write it as file.py:factory, package.module:attribute, or {spelled}")
    if options:
        raise FarshiftError(
            f"model {name!r} has no options, but {', '.join(sorted(options))} is given: set it in the code"
        )
    return _load_own_model(name, source, attribute, adapters)


def read_options(texts: Sequence[str]) -> dict[str, str]:
    """Parse options from texts `key=value`. `FarshiftError` says which one is invalid, without repeating it: a value
    may be a secret."""
    options: dict[str, str] = {}
    for number, text in enumerate(texts, 1):
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise FarshiftError(f"option {number} of {len(texts)} is not key=value")
        if key in options:
            raise FarshiftError(f"the option {key} is given twice")
        options[key] = value
    return options


def load_schemes() -> dict[str, ModuleType]:
    """Load the adapters that make a model from a text, by scheme, sorted.

    Their modules have `SCHEME` and `from_spec(rest, options) -> factory`: `rest` is the text after the scheme and its
    colon, `options` are strings by name. `factory(seed, task, device, prompt)` returns a new model. The factory has
    `name`, for the run card, and `code`, a digest of all that determines predictions, without secrets.
    """
    known: dict[str, ModuleType] = {}
    for name in sorted(find_files_by_name("benchmarks/adapters", ".py")):
        adapter = load_module("benchmarks/adapters", name, "adapter")
        scheme = getattr(adapter, "SCHEME", None)
        if scheme in known:
            raise BadDefinition(f"{adapter.__file__}: the scheme {scheme!r} is used by {known[scheme].__file__}")
        if scheme is not None:
            known[scheme] = adapter
    return dict(sorted(known.items()))


def _load_own_model(name: str, source: str, attribute: str, adapters: Mapping[str, ModuleType]) -> tuple[Any, str]:
    try:
        with wrap_user_errors(f"model {name!r}: importing {source}"):
            holder = _import_file(Path(source)) if source.endswith(".py") else _import_module(source)
    except ModelError as error:
        if isinstance(error.__cause__, ModuleNotFoundError) and error.__cause__.name == source:
            raise UnknownName("module or kind of model", source, adapters) from error
        raise
    if not hasattr(holder, attribute):
        raise UnknownName(f"attribute of {source}", attribute, (key for key in vars(holder) if not key.startswith("_")))
    with wrap_user_errors(f"model {name!r}: looking for the modules that {source} imports"):
        return getattr(holder, attribute), _digest_code(holder, source)


_LIBRARIES = {*sys.stdlib_module_names, __name__.partition(".")[0]}


def _digest_code(holder: ModuleType, source: str) -> str:
    """A digest of a model's file, `source` or that of the module `source`; with the modules beside it that it imports,
    if there are any. Empty for a module without a file. Installed libraries do not count."""
    if not getattr(holder, "__file__", None):
        return ""
    file = Path(str(holder.__file__)).absolute()
    depth = 0 if source.endswith(".py") else source.count(".") + (file.name == "__init__.py")
    root, remaining, digests = file.parents[depth], [file], dict[Path, str]()
    while remaining:
        path = remaining.pop()
        digests[path] = compute_file_sha256(path)
        if path.suffix == ".py" and "site-packages" not in path.parts:
            remaining += set(_list_imports(path, root)) - digests.keys()
    if len(digests) == 1:
        return digests[file]
    return compute_identity(sorted((path.relative_to(root).as_posix(), digest) for path, digest in digests.items()))


def _list_imports(file: Path, root: Path) -> Iterator[Path]:
    """The files below `root` that a file imports, at its top or in a function."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        names: list[list[str]] = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = file.parents[node.level - 1].relative_to(root).parts if node.level else ()
            module = node.module.split(".") if node.module else ()
            names = [[*package, *module, alias.name] for alias in node.names]
        for parts in names:
            for depth in range(1, len(parts) + 1) if parts[0] not in _LIBRARIES else ():
                path = root.joinpath(*parts[:depth])
                yield from filter(Path.is_file, (path.with_name(f"{path.name}.py"), path / "__init__.py"))


def _import_module(name: str) -> Any:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    return importlib.import_module(name)


def _import_file(path: Path) -> Any:
    if not path.is_file():
        raise FarshiftError(f"model file {path} does not exist")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FarshiftError(f"model file {path} cannot be imported")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, loaded)
    sys.path.insert(0, str(path.parent.resolve()))  # so that it can import modules of its folder
    spec.loader.exec_module(loaded)
    return loaded
