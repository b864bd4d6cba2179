"""Options of tables: columns of fields, file format, missing values and selection of rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...core.errors import BadDefinition
from ...core.plugins import describe_problem
from ..files.patterns import PathPattern, choose_paths

Value = bool | int | float | str
Columns = str | int | list[str | int] | dict[Literal["first", "last"], str | int]
"""A column by name or index (from 0); for a tensor several columns, or all from the first to the last."""

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".npz": "npz",
}
TYPED = ("parquet", "npz")
"""The formats whose columns have types."""


class ReaderOptions(BaseModel):
    """Options of a reader of several files. `each` has other options for one of them, by its name or a pattern."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    READER: ClassVar[str]

    constants: dict[str, Value] = {}
    each: dict[str, dict[str, Any]] = {}

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Self:
        """Parse the options. Raises `BadDefinition` with the first that is unknown, with similar names, or not
        valid."""
        try:
            return cls(**options)
        except ValidationError as error:
            raise BadDefinition(f"{cls.READER}: option {describe_problem(error.errors()[0], cls)}") from error

    def of_file(self, path: str) -> Self:
        """Return the options of one file; options in `each` whose name or pattern fits it take precedence."""
        changes: dict[str, Any] = {}
        for pattern, options in self.each.items():
            if choose_paths([path], [pattern]):
                changes |= options
        if not changes:
            return self
        base_options = self.model_dump(exclude_defaults=True, exclude={"each"})
        constants = {**self.constants, **changes.get("constants", {})}
        return self.parse({**base_options, **changes, "constants": constants})


class Sample(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: int = Field(ge=1)
    seed: str


class Join(BaseModel):
    """Another table that is joined by a key: `on` is the key's column, { own = its } if the names differ, or "#" for
    the row's index; `prefix` is put before the names of its columns."""

    model_config = ConfigDict(extra="allow", frozen=True)

    file: str
    on: str | dict[str, str]
    prefix: str = ""

    @property
    def keys(self) -> tuple[str, str]:
        """Return the key's column in this table and in the other one."""
        if isinstance(self.on, str):
            return self.on, self.on
        if len(self.on) != 1:
            raise BadDefinition(f"table: join {self.file}: `on` must be one column, or {{ own = its }}")
        return next(iter(self.on.items()))

    @property
    def form(self) -> TableOptions:
        """The options for reading the other table."""
        return TableOptions.parse(self.model_extra or {})


class TableOptions(ReaderOptions):
    """Options of the reader `table`; `table.read` documents them."""

    READER = "table"

    columns: dict[str, Columns] = {}
    texts: dict[str, str] = {}
    join: list[Join] = []
    from_name: str = ""
    row_number: str = ""
    ranges: dict[str, dict[str, tuple[int, int]]] = {}
    above: dict[str, float] = {}
    at_least: dict[str, float] = {}
    maps: dict[str, dict[str, Value] | list[str | list[str]]] = {}

    format: Literal["", "csv", "tsv", "json", "jsonl", "parquet", "sqlite", "excel", "npz", "coco", "lines"] = ""
    members: str | list[str] = []
    file: str = ""
    encoding: str = "utf-8"
    skip: int = Field(0, ge=0)
    comment: str = ""
    separator: str = ""
    quote: str = Field('"', max_length=1)
    escape: str = Field("", max_length=1)
    header: bool | list[str] = True
    records: str = ""
    pattern: str = ""
    decimal: str = Field(".", max_length=1)
    trim: bool = False

    missing: list[str] = []
    if_missing: Literal["error", "drop"] | dict[str, Value] = "error"
    is_missing: dict[str, str] = {}

    where: dict[str, Value | list[Value]] = {}
    without: dict[str, Value | list[Value]] = {}
    between: dict[str, tuple[float, float]] = {}
    sample: Sample | None = None

    @cached_property
    def name_parts(self) -> PathPattern | None:
        return PathPattern(self.from_name) if self.from_name else None

    def format_of(self, path: str) -> str:
        """Return the option `format`, or the format that the file's name implies."""
        if self.format:
            return self.format
        name = PurePosixPath(path.lower())
        file_format = _FORMATS.get((PurePosixPath(name.stem) if name.suffix in _COMPRESSED else name).suffix)
        if not file_format:
            raise BadDefinition(
                f"{path}: its name has no known suffix: set options = {{ format = .. }} to one of "
                f"{', '.join(sorted({*_FORMATS.values(), 'lines'}))}"
            )
        return file_format
