"""The definition of a benchmark: split, task, metrics, views, protocol, prompt. Checked before anything is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskPin(_Strict):
    type: Literal["classification", "multilabel", "sequence", "detection", "regression"]
    inputs: list[str] = Field(min_length=1)
    label: str
    classes: int | None = Field(default=None, ge=2)
    tokens: Literal["whitespace", "character"] = "whitespace"
    aligned: bool = False
    names: list[str] = []
    categories: list[str] | None = None
    """Inputs whose integers are codes without an order; by default those that the source declares. How a model encodes
    its inputs is not part of the protocol, so this is not in the identity of entries."""


class Holdout(_Strict):
    """Rows taken out of a published part for another use, so that the split itself stays as published.

    `share` of the part's rows of weight 1 (a published repetition is never withheld), drawn by row ids. The hold-outs
    of one part are drawn one after the other, in the order of the file.
    """

    part: Literal["train", "id_test", "ood_test"]
    to: Literal["id_val", "id_test", "ood_val"]
    share: float = Field(gt=0, lt=1)


class PluginPin(_Strict):
    """A plug-in by name and version; another version makes another benchmark."""

    name: str
    version: int


class MetricPin(PluginPin):
    """A metric and its options (`OPTIONS` of its file), such as the fields that define groups."""

    options: dict[str, Any] = {}

    @model_serializer(mode="wrap")
    def _without_empty(self, write: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        # Keep identities of before options existed: a metric without options is written without them.
        return {name: value for name, value in write(self).items() if name != "options" or value}


class View(_Strict):
    """Rows that a score covers: those of a part, all or only the (un)corrupted ones, against the true label or the
    label observed in training."""

    part: str
    rows: Literal["all", "corrupted", "clean"] = "all"
    against: Literal["true", "given"] = "true"


class Adaptation(_Strict):
    """Test-time adaptation as this benchmark permits it. The harness, not the model, fixes the batches, their order,
    and when `reset()` is called: before each part, before each group of a part, before each batch, or once."""

    batch_size: int = Field(ge=1)
    order: Literal["stored", "shuffled", "grouped"] = "stored"
    reset: Literal["part", "group", "batch", "never"] = "part"

    @model_validator(mode="after")
    def _groups_together(self) -> Adaptation:
        if (self.reset == "group") != (self.order == "grouped"):
            raise ValueError("reset = 'group' requires order = 'grouped', and the reverse")
        return self


class DataAccess(_Strict):
    """Data that may be used beyond the training and validation rows. A run records what it used."""

    ood_val_labels: bool = False
    ood_test_inputs: bool = False
    adaptation: Adaptation | None = None


class Ceiling(_Strict):
    """The maximum that training may use; a run whose model reports more is not scored."""

    steps: int | None = Field(default=None, ge=1)
    epochs: int | None = Field(default=None, ge=1)
    device_seconds: float | None = Field(default=None, gt=0)


class SyntheticShifts(_Strict):
    """Synthetic shifts (Efthymiadis et al., WACV 2025): augmentation families in `folds` folds; a setting is evaluated
    on the validation rows under the families that its training did not see."""

    families: list[str] = Field(min_length=2)
    folds: int = Field(default=2, ge=2)

    @model_validator(mode="after")
    def _enough(self) -> SyntheticShifts:
        if self.folds > len(self.families) or len(set(self.families)) < len(self.families):
            raise ValueError("crafted needs at least as many families as folds, each listed once")
        return self


class Protocol(_Strict):
    """How a model may be trained and selected. `selection` lists the permitted selection rules, the default one first.
    `quick` needs fewer seeds; its entries never share a leaderboard table with full ones, since budget and selection
    rule are part of an entry's identity."""

    selection: list[str] = Field(default=["last"], min_length=1)
    seeds: int = Field(default=5, ge=1)
    quick_seeds: int = Field(default=3, ge=1)
    ceiling: Ceiling = Ceiling()
    touch: DataAccess = DataAccess()
    crafted: SyntheticShifts | None = None

    @model_validator(mode="after")
    def _honest(self) -> Protocol:
        if "oracle" in self.selection:
            raise ValueError("selection: oracle reads the test labels; it is always shown and cannot be listed")
        if ("crafted_shift" in self.selection) != (self.crafted is not None):
            raise ValueError("selection crafted_shift requires a table [protocol.crafted], and the reverse")
        return self


class PromptPin(_Strict):
    """The prompt of a language model: k examples drawn from the training part by `seed`, each formatted by `example`,
    joined by `separator` after `instruction`, then `query`. In the templates `{field}` is replaced by a field's
    value."""

    version: int = 1
    k: int = Field(default=0, ge=0, le=64)
    seed: int = 0
    instruction: str = ""
    example: str
    query: str
    separator: str = "\n\n"
    stop: list[str] = []
    max_tokens: int = Field(default=256, ge=1)
    extraction: PluginPin


class Reference(_Strict):
    """A published score, its source, and its status: `P` printed in the paper, `R` reproduced by others, `S` from a
    secondary source."""

    model: str
    score: str
    source: str
    mark: Literal["P", "R", "S"] = "P"


class Composition(_Strict):
    """Rows that are composed of others: each row of `view` names its components by the values of the meta fields
    `parts`, which are values of the meta field `key` of rows of the view `of`."""

    view: str
    parts: list[str] = Field(min_length=2)
    of: str
    key: str


class BenchmarkDefinition(_Strict):
    name: str
    split: str
    title: str
    tags: list[str] = []
    suites: list[str] = []
    notes: str = ""
    task: TaskPin
    holdouts: list[Holdout] = []
    metrics: list[MetricPin] = Field(min_length=1)
    views: dict[str, View]
    protocol: Protocol = Protocol()
    prompt: PromptPin | None = None
    composed: Composition | None = None
    references: list[Reference] = []

    @model_validator(mode="after")
    def _check_consistency(self) -> BenchmarkDefinition:
        if not {"id", "ood"} <= self.views.keys():
            raise ValueError("views must include `id` and `ood`")
        if self.task.type in ("classification", "multilabel") and not self.task.classes:
            raise ValueError(f"a {self.task.type} task needs `classes`")
        if self.task.names and len(self.task.names) != self.task.classes:
            raise ValueError("task: give as many names as classes, or none")
        if len({pin.name for pin in self.metrics}) < len(self.metrics):
            raise ValueError("metrics: list each once")
        if len({holdout.to for holdout in self.holdouts}) < len(self.holdouts):
            raise ValueError("holdouts: only one per new part")
        if self.composed and not {self.composed.view, self.composed.of} <= self.views.keys():
            raise ValueError("composed: `view` and `of` must be views")
        if "@" not in self.split:
            raise ValueError("split must pin a version, such as scan/length@1")
        return self
