"""The manifest: the frozen, versioned result of a split.

A manifest is a folder `<source>/<split>/v<N>/` with `split.toml` for people, `rows.parquet` for machines (unless the
rule regenerates the rows exactly) and `audit.json`. Its identity is sha256 of the canonical JSON of all that decides
a score: name, version, kind, the source's digest, the label field, and each part's row count and digest.
"""

from __future__ import annotations

import inspect
import operator
import re
import reprlib
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ..core.canonical import compute_identity
from ..core.documents import read_json
from ..core.errors import BadData, BadDefinition, FarshiftError, UnknownName, get_first_line, replace_error_message
from ..core.plugins import load_function, read_definition
from .assignment import PARTS, Assignment, compute_part_digests, drop_shared_inputs

if TYPE_CHECKING:
    import pyarrow as pa

    from .schema import Schema


def _check_relative_path(name: str) -> str:
    """Check that a relative path stays inside its folder."""
    if not name.isprintable() or "\\" in name or {"", ".", ".."} & set(name.split("/")):
        raise ValueError(f"{name!r} is not a file name or a relative path")
    return name


class FilePin(BaseModel):
    """One file: its pinned content, and where to download it (`mirrors`, each a table with its `sort`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_check_relative_path)]
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)
    mirrors: list[dict[str, Any]] = []


class UnpinnedFile(BaseModel):
    """A file without a published sha256: its size or md5, if known. Its sha256 is pinned when it is first read, and the
    resulting rows are checked against published counts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_check_relative_path)]
    bytes: int | None = Field(None, ge=0)
    md5: str | None = Field(None, pattern=r"^[0-9a-f]{32}$")
    mirrors: list[dict[str, Any]] = []


class TreePin(BaseModel):
    """A folder of many files: its git tree hash (empty: pinned when it is first read), and where to download it. Each
    mirror gives one archive or folder of all files, never single files. `plain` is the hash with no file executable,
    for copies that lose the executable bit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_check_relative_path)]
    tree: str = Field("", pattern=r"^([0-9a-f]{40})?$")
    plain: str = Field("", pattern=r"^([0-9a-f]{40})?$")
    files: int | None = Field(None, ge=1)
    mirrors: list[dict[str, Any]] = []


Kind = Literal["domain", "length", "compositional", "easy-to-hard", "corrupted-label"]
NAME = "[a-z0-9_]+/[a-z0-9_]+"
"""The form of a split's name: its source's name, a slash, its own name."""

KINDS: tuple[str, ...] = ("domain", "length", "compositional", "easy-to-hard", "corrupted-label")


KIND_WORDS: dict[str, str] = {
    "domain": "domain generalisation generalization adaptation",
    "length": "length generalisation generalization extrapolation",
    "compositional": "compositional generalisation generalization systematicity",
    "easy-to-hard": "easy-to-hard generalisation generalization difficulty",
    "corrupted-label": "corrupted-label label noise noisy labels",
}
"""What a kind of shift is called elsewhere: words by which a search finds it."""


def check_kind(name: str) -> str:
    """Return `name` if it is a kind of shift; else raise `UnknownName`."""
    if name not in KINDS:
        raise UnknownName("kind of shift", name, KINDS)
    return name


_TAKES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
    "None": (),
}
"""The types of a TOML value that fit a rule's parameter, by the beginning of its annotation."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourcePin(_Strict):
    name: str
    version: int = 1
    digest: str = ""


class AxisInfo(_Strict):
    """The meaning of a severity or a group."""

    name: str
    unit: str = ""


class PublishedCounts(_Strict):
    """The counts in the split's first publication, and its address."""

    rows: dict[str, int]
    reference: str


class KnownDefects(_Strict):
    """Known defects of a published split, with their numbers. An audit that measures other numbers fails.

    `duplicates`: number of shared inputs, by pair of parts ("train/ood_test"); `unseen_tokens`: number of tokens (or
    values of a factor) that never occur in training, by part. `one_distribution`: training and test have the same
    distribution, and the shift is from the average row to the worst group.
    """

    duplicates: dict[str, int] = {}
    unseen_tokens: dict[str, int] = {}
    one_distribution: bool = False


class PartPin(_Strict):
    rows: int
    weighted_rows: int
    digest: str


class SplitDefinition(_Strict):
    """The content of `split.toml`. A definition without an identity is not frozen yet.

    `factors` are fields whose values all occur in training, while a test row combines them in a new way; `examples` is
    the separator of the worked examples in an input text (a blank line, for instance): the audit then looks for rows
    that share examples. `drop_duplicates` drops the training rows whose inputs stand in another part too.
    `label_names` are the names of the label's classes 0, 1 .. `files` are the published lists that
    the rule reads once, when the split is frozen (its rows are then shipped).
    """

    format: Literal[1] = 1
    name: str = Field(pattern=f"^{NAME}$", description="lower-case letters, digits and _, as in source/split")
    version: int = Field(ge=1)
    kind: Kind
    title: str
    label: str
    rule: str
    ships_rows: bool = False
    notes: str = ""
    licence: str = ""
    references: list[str] = []
    source: SourcePin
    parameters: dict[str, Any] = {}
    severity: AxisInfo | None = None
    group: AxisInfo | None = None
    published: PublishedCounts | None = None
    factors: list[str] = []
    examples: str = ""
    label_names: list[str] = []
    declared: KnownDefects = KnownDefects()
    drop_duplicates: bool = False
    files: list[FilePin] = []
    parts: dict[str, PartPin] = {}
    identity: str = ""

    def computed_identity(self) -> str:
        return compute_identity(
            {
                "format": self.format,
                "name": self.name,
                "version": self.version,
                "kind": self.kind,
                "source": {"name": self.source.name, "version": self.source.version, "digest": self.source.digest},
                "label": self.label,
                "parts": {name: {"rows": pin.rows, "digest": pin.digest} for name, pin in self.parts.items()},
            }
        )


@dataclass(frozen=True)
class Manifest:
    """A definition and its folder."""

    definition: SplitDefinition
    folder: Path

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def full_name(self) -> str:
        return f"{self.definition.name}@{self.definition.version}"

    @property
    def identity(self) -> str:
        return self.definition.identity

    @property
    def frozen(self) -> bool:
        return bool(self.definition.identity)

    def audit(self) -> dict[str, Any]:
        """The audit measured when the manifest was frozen, with `add_given_labels`; empty if there is none."""
        try:
            audit: dict[str, Any] = read_json(self.folder / "audit.json")
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise BadData(f"{self.folder / 'audit.json'} is not valid JSON: {error}") from error
        return add_given_labels(audit)

    def audit_summary(self) -> str:
        """The audit's verdict in one line."""
        return str(self.audit().get("why", ""))

    def check_identity(self) -> None:
        """Raise `BadData` if the definition is frozen and its identity does not match its content."""
        if self.frozen and self.definition.computed_identity() != self.definition.identity:
            raise BadData(f"{self.folder / 'split.toml'} was changed: its identity does not match its content")

    def rows(self, source: pa.Table, schema: Schema) -> pa.Table:
        """Return the manifest's rows (row_id, check, part, weight, group, severity, label override), verified.

        They are read from `rows.parquet` or regenerated by the rule; in both cases the digest of every part must be the
        pinned one, else `BadData` names the part.
        """
        if not self.frozen:
            raise BadDefinition(
                f"{self.full_name} is a definition, not yet frozen: farshift splits build {self.folder / 'split.toml'}"
            )
        self.check_identity()
        assigned = self.shipped() if self.definition.ships_rows else assign_rows(self.definition, source, schema)
        digests = compute_part_digests(assigned)
        for name in sorted({*digests, *self.definition.parts}):
            pin, got = self.definition.parts.get(name), digests.get(name)
            if pin is None or got is None or got["digest"] != pin.digest:
                raise BadData(
                    f"{self.full_name}: part {name} is not the published one "
                    f"({got['rows'] if got else 0} rows, expected {pin.rows if pin else 0})"
                )
        return assigned

    def shipped(self) -> pa.Table:
        """Return the rows of `rows.parquet`; `BadData` if they cannot be read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.folder / "rows.parquet"
        try:
            table = pq.read_table(path)
            table.validate(full=True)
        except (OSError, pa.ArrowInvalid) as error:
            raise BadData(f"{path}: cannot be read: {get_first_line(error)}") from error
        absent = sorted({"row_id", "check", "part"} - set(table.column_names))
        if absent:
            raise BadData(f"{path}: lacks the columns {', '.join(absent)}")
        return table


def add_given_labels(audit: dict[str, Any]) -> dict[str, Any]:
    """Return an audit with `labels.given`: the shares of the training labels as given to a model, and the total
    variation distance of each part's true labels from them. The rest of `labels` is about true labels. They follow from
    the transition matrix: an audit without one, such as of labels that are not corrupted, is returned unchanged."""
    labels, transition = audit.get("labels", {}), audit.get("transition")
    if not transition or "train" not in labels.get("shares", {}):
        return audit
    names = [str(name) for name in transition["classes"]]
    true = [labels["shares"]["train"].get(name, 0.0) for name in names]
    columns = zip(names, zip(*transition["shares"], strict=True), strict=True)
    shares = {name: sum(map(operator.mul, true, column)) for name, column in columns}
    distances = {
        part: round(sum(abs(shares[name] - known.get(name, 0.0)) for name in names) / 2, 4)
        for part, known in labels["shares"].items()
    }
    given = {"shares": {name: round(share, 4) for name, share in shares.items()}, "total_variation": distances}
    return audit | {"labels": labels | {"given": given}}


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a `split.toml`; `BadDefinition` lists what is wrong in it."""
    definition = read_definition(path, SplitDefinition)
    unknown = sorted(set(definition.parts) - set(PARTS))
    if unknown:
        raise BadDefinition(f"{path}: unknown parts {', '.join(unknown)}: use {', '.join(PARTS)}")
    return Manifest(definition, path.parent)


def assign_rows(
    definition: SplitDefinition, source: pa.Table, schema: Schema, files: dict[str, Path] | None = None
) -> pa.Table:
    """Apply the rule to a source's rows (with row_id and check); return the assignment in the source's order. A rule
    that reads published lists receives them as `files`, by name. An exception in the rule, or an invalid result,
    becomes one line that names the split and the rule."""
    if schema[definition.label].role != "label":
        labels = ", ".join(field.name for field in schema.of_role("label")) or "none"
        raise BadDefinition(f"{definition.name}: the field {definition.label!r} is not a label; labels are: {labels}")
    rule = load_rule(definition)
    where = f"{definition.name}: rule {definition.rule}"
    given = {"files": files} if definition.files else {}
    try:
        outcome = rule(source, **definition.parameters, **given)
        if not isinstance(outcome, Assignment):
            raise BadDefinition("gives no Assignment")
        assigned = outcome.table(source)
    except FarshiftError as error:
        raise replace_error_message(type(error), f"{where}: {error}") from error
    except MemoryError:  # not the rule's fault
        raise
    except Exception as error:  # a rule may be a user's function, and raise anything
        message = " ".join(str(error).split())
        raise BadDefinition(f"{where}: {type(error).__name__}{_find_error_line(rule, error)}: {message}") from error
    label = schema[definition.label].arrow()
    given_as = assigned["label"].type if "label" in assigned.column_names else label
    if given_as != label:
        raise BadDefinition(f"{where}: gives labels as {given_as}, and the field {definition.label!r} is {label}")
    return drop_shared_inputs(assigned, source, schema) if definition.drop_duplicates else assigned


def load_rule(definition: SplitDefinition) -> Callable[..., Any]:
    """Return the function that a definition names as its rule. `UnknownName` if there is none; `BadDefinition` if it
    does not accept the definition's parameters, which is checked without reading rows."""
    rule: Callable[..., Any] = load_function("splits/rules", definition.rule, "rule")
    given: dict[str, Any] = {"files": {}} if definition.files else {}
    check_parameters(rule, definition.parameters | given, f"{definition.name}: rule {definition.rule}")
    return rule


def check_parameters(rule: Callable[..., Any], parameters: dict[str, Any], where: str) -> None:
    """Raise `BadDefinition` if a parameter is unknown, missing, or of another type. Custom types and the items of lists
    are not checked."""
    signature = inspect.signature(rule)
    try:
        signature.bind(None, **parameters)
    except TypeError as error:
        takes = ", ".join(name for name in list(signature.parameters)[1:] if name != "files")
        raise BadDefinition(f"{where}: {error}; its parameters are {takes}") from error
    for name, value in parameters.items():
        annotation = signature.parameters[name].annotation if name in signature.parameters else ""
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        plain = text
        while "[" in plain:
            plain = re.sub(r"\[[^\[\]]*\]", "", plain)  # list[str | int] | None: list | None
        begins = [type_name.strip() for type_name in plain.split("|")]
        if set(begins) <= _TAKES.keys() and not any(type(value) in _TAKES[type_name] for type_name in begins):
            is_date = isinstance(value, date | time)
            shown = value.isoformat() if is_date else reprlib.repr(value)
            hint = f': write it in quotes, {name} = "{shown}"' if is_date and "str" in begins else ""
            raise BadDefinition(f"{where}: {name} = {shown}, and the rule takes {text}{hint}")


def _find_error_line(rule: Callable[..., Any], error: Exception) -> str:
    """Return the line of the rule's own file where an error arose, if it did."""
    file = sys.modules[rule.__module__].__file__
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({file}:{lines[-1]})" if lines else ""
