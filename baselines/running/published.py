"""Settings that a published suite of experiments trains with or searches over: files of `published/`.

A file gives its `source`, and entries `[[on]]`, each for the benchmarks that match its shell patterns, and for some
algorithms if it names them. Of the matching entries, later ones override earlier ones setting by setting. `where` gives
the file and line of the source for each setting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from math import ceil
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.model_inputs.load import load_model_inputs
from ...core.errors import FarshiftError, ModelError, UnknownName
from ...core.plugins import find_files_by_name, read_definition
from ..recipe import (
    Recipe,
    RecipeBudget,
    Setting,
    drop_settings,
    find_plugin_files,
    make_fine_tuned,
    read_settings,
    replace_augmentation,
    replace_network,
)
from .resources import prepare_data

Span = list[str | int | float]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PublishedEntry(_Strict):
    """Published settings for some benchmarks, and for some or all algorithms."""

    benchmarks: list[str]
    algorithms: list[str] = []
    network: str = ""
    """A description of the network trained there."""
    pretrained: bool = False
    """Whether it starts from pretrained weights, which the user has to name."""
    instead: str = ""
    """The network of this package that replaces it."""
    steps: Annotated[int, Field(ge=0)] = 0
    epochs: Annotated[int, Field(ge=0)] = 0
    """Epochs over the training rows, instead of steps."""
    settings: dict[str, Setting] = {}
    search: dict[str, Span] = {}
    where: dict[str, str]

    @model_validator(mode="after")
    def _sourced(self) -> PublishedEntry:
        given = {*self.settings, *self.search, *(name for name in ("steps", "epochs") if getattr(self, name))}
        if given != self.where.keys():
            raise ValueError(f"where: give the source line of {', '.join(sorted(given ^ self.where.keys()))}")
        return self


class PublishedSource(_Strict):
    name: str
    title: str
    citation: str
    source: str
    notes: str
    on: list[PublishedEntry]


def load_all_published() -> dict[str, PublishedSource]:
    """All files by name: this package's and those of FARSHIFT_PATH."""
    return {
        name: read_definition(path, PublishedSource)
        for name, path in sorted(find_files_by_name("baselines/published", ".toml").items())
    }


def find_published(name: str, benchmark: str, algorithm: str) -> PublishedEntry:
    """What `name` publishes for an algorithm on a benchmark, all matching entries in one; `UnknownName` for an unknown
    name, `FarshiftError` if it publishes nothing for the benchmark."""
    known = load_all_published()
    if name not in known:
        raise UnknownName("published settings", name, known)
    match = PublishedEntry(benchmarks=[benchmark], where={})
    for entry in known[name].on:
        if not any(fnmatch(benchmark, pattern) for pattern in entry.benchmarks):
            continue
        if entry.algorithms and algorithm not in entry.algorithms:
            continue
        for field in ("network", "instead", "pretrained", "steps", "epochs"):
            setattr(match, field, getattr(entry, field) or getattr(match, field))
        for field in ("settings", "search", "where"):
            setattr(match, field, getattr(match, field) | getattr(entry, field))
    if not match.where:
        others = sorted({pattern for entry in known[name].on for pattern in entry.benchmarks})
        raise FarshiftError(f"--published {name} has no settings for {benchmark}; it has some for {', '.join(others)}")
    return match


def apply_published(recipe: Recipe, name: str, benchmark: str, rows: Callable[[], int]) -> Recipe:
    """The recipe's algorithm with the settings published for it; its own settings of the algorithm remain. rows:
    returns the number of training rows, called if epochs are published. `FarshiftError` if weights have to be named."""
    if recipe.algorithm is None:
        raise ModelError(f"{recipe.name} is an estimator: --published is for networks")
    match = find_published(name, benchmark, recipe.algorithm)
    tuned = recipe.network == "pretrained"
    if match.pretrained and not tuned:
        raise FarshiftError(
            f"--published {name}: on {benchmark} it trains {match.network}: name its weights with --fine-tune, "
            "such as microsoft/resnet-50"
        )
    own = read_settings(find_plugin_files("algorithms")[recipe.algorithm])
    retained_names = {*own} - {"lr", "batch_size"} | ({"weights", "side", "inputs"} if tuned else set())
    settings = {
        setting: value for setting, value in recipe.settings.items() if setting in retained_names
    } | match.settings
    steps = match.steps
    if match.epochs:
        steps = match.epochs * ceil(rows() / int(str(settings["batch_size"])))
    network = recipe.network if tuned else match.instead or recipe.network
    changed = {"settings": settings, "full": RecipeBudget(steps=steps), "network": network, "published": name}
    return drop_settings(recipe, changed)


def list_published() -> list[dict[str, Any]]:
    """One record for each published setting: its file, benchmarks and algorithms, its value and range, and its line in
    the source."""
    return [
        {
            "published": name,
            "benchmarks": entry.benchmarks,
            "algorithms": entry.algorithms,
            "network": entry.network,
            "setting": setting,
            "value": getattr(entry, setting) if setting in ("steps", "epochs") else entry.settings.get(setting),
            "search": entry.search.get(setting),
            "source": source.source,
            "where": where,
        }
        for name, source in load_all_published().items()
        for entry in source.on
        for setting, where in entry.where.items()
    ]


@dataclass(frozen=True)
class RecipeOverrides:
    """Changes that a run makes to a shipped recipe; none if all fields are empty.

    network: a file of networks/ that replaces the recipe's network. encoder: a frozen pretrained model whose features
    replace texts, images or audio: see `encoding/checkpoint.py`. fine_tune: a pretrained model
    that replaces the recipe's network and is trained further. augment: how training rows are augmented,
    `NAME[+NAME..][,setting=value..]`. published: the source of published settings (`domainbed`, `wilds`). stream: where
    rows are read from, instead of the benchmark's data in the cache; `{part}` is replaced by a part's name."""

    network: str = ""
    encoder: str = ""
    fine_tune: str = ""
    augment: str = ""
    published: str = ""
    stream: str = ""

    def of(self, recipe: Recipe, benchmark: Benchmark) -> Recipe:
        """Apply the changes to a recipe. Opens no data, except to count the training rows for published epochs.

        A fine-tuned network reads images at the size of the pretrained model, audio through its processor, or its
        tokens."""
        begun = self._begun(recipe)
        if self.published:
            if self.encoder:
                raise FarshiftError("--published trains networks on rows: give --fine-tune instead of --encoder")
            begun = apply_published(begun, self.published, benchmark.name, lambda: _count_training_rows(benchmark))
            if self.network and begun.network != self.network:
                raise FarshiftError(f"--published {self.published} trains {begun.network} here: leave --network out")
        if self.augment and self.encoder:
            raise FarshiftError(
                "--encoder reads every row only once: use --augment with networks that read the rows themselves"
            )
        return replace_augmentation(begun, self.augment) if self.augment else begun

    def _begun(self, recipe: Recipe) -> Recipe:
        if self.network:
            if self.fine_tune:
                raise FarshiftError("--fine-tune has a network of its own: leave --network out")
            recipe = replace_network(recipe, self.network)
        if not self.fine_tune:
            return recipe.model_copy(update={"encoder": self.encoder}) if self.encoder else recipe
        if self.encoder:
            raise FarshiftError("--encoder keeps a pretrained model frozen, --fine-tune trains it: give one of them")
        from ..encoding.checkpoint import find_checkpoint
        from ..encoding.frozen_readers import read_image_side, reads_audio

        checkpoint = find_checkpoint(self.fine_tune)
        side = read_image_side(checkpoint)
        if side is not None:
            return make_fine_tuned(recipe, self.fine_tune, side=side)
        return make_fine_tuned(recipe, self.fine_tune, inputs="sounds" if reads_audio(checkpoint) else "tokens")


NOTHING = RecipeOverrides()


def _count_training_rows(benchmark: Benchmark) -> int:
    """The number of training rows."""
    prepare_data(benchmark)
    return load_model_inputs(benchmark).count_rows("train")
