"""A listing: typed records in their order, with a short repr, HTML for notebooks, and a data frame."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

from .errors import MissingExtra
from .text import LINES, escape_untrusted

if TYPE_CHECKING:
    import pandas as pd


class ListingRecord(Protocol):
    """What a listing holds."""

    def to_dict(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=ListingRecord)

_IN_A_REPR = 8
_IN_HTML = 200


class Listing(Sequence[R], Generic[R]):
    """Records of one type: indexed, sliced and counted as a list is. A notebook shows it as a table, `to_pandas()` is a
    data frame with a row for each record, and `to_dicts()` is plain JSON.

    name: what one record is called. shown: a record's cells by column, as tables show them.
    """

    def __init__(self, records: Sequence[R], name: str, shown: Callable[[R], Mapping[str, Any]]) -> None:
        self._records, self._name, self._shown = tuple(records), name, shown

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[R]:
        return iter(self._records)

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> Listing[R]: ...

    def __getitem__(self, index: int | slice) -> R | Listing[R]:
        if isinstance(index, slice):
            return Listing(self._records[index], self._name, self._shown)
        return self._records[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listing) and self._records == other._records

    def cells(self) -> list[dict[str, str]]:
        """Each record as a table shows it: text by column."""
        return [{column: str(value) for column, value in self._shown(record).items()} for record in self._records]

    def __repr__(self) -> str:
        count = f"{len(self):,} {self._name}{'' if len(self) == 1 else 's'}"
        first = ["  ".join([*row.values()][:2]) for row in self[:_IN_A_REPR].cells()]
        more = ["  .."] if len(self) > _IN_A_REPR else []
        return "\n".join([count, *(f"  {name}" for name in first), *more])

    def _repr_html_(self) -> str:
        rest = len(self) - _IN_HTML
        caption = f"{len(self):,} {self._name}{'' if len(self) == 1 else 's'}"
        return render_table(self[:_IN_HTML].cells(), f"{caption}, the first {_IN_HTML} here" if rest > 0 else caption)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Plain JSON: a list of records."""
        return [record.to_dict() for record in self._records]

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for each record; what a record nests has a column each (`ood.value`). `MissingExtra`
        without pandas."""
        return to_data_frame(self.to_dicts())


_SHORT = 4
"""A search word of up to so many letters has to begin a word: `time` does not find `sentiment`."""


def has_words(search: str, *texts: str) -> bool:
    """Whether every word of `search` occurs in one of the texts, in any case, or does without its plural `s`."""
    joined = "\n".join(texts).casefold()
    return all(_occurs(word, joined) or _occurs(word.removesuffix("s"), joined) for word in search.casefold().split())


def _occurs(word: str, text: str) -> bool:
    if len(word) > _SHORT:
        return word in text
    return re.search(rf"(?<![^\W_]){re.escape(word)}", text) is not None


def to_data_frame(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each record; a nested record has a column for each of its values, named `outer.inner`. `MissingExtra`
    without pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtra("a data frame", "notebook") from error
    return pd.DataFrame([dict(_flatten_record(record)) for record in records])


def _flatten_record(record: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flatten_record(value, f"{outer}{name}.")
        else:
            yield f"{outer}{name}", value


def escape_html(text: str) -> str:
    """A text escaped for a page: no markup, control or invisible characters."""
    return escape(escape_untrusted(text, LINES))


def render_table(rows: Sequence[Mapping[str, object]], caption: str = "", note: str = "") -> str:
    """Rows of cells by column as one HTML table, the caption above it and a note below. Rows may lack columns."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = _render_row("th", columns)
    body = "".join(_render_row("td", [str(row.get(column, "")) for column in columns]) for row in rows)
    caption_html = f"<caption>{escape_html(caption)}</caption>" if caption else ""
    note_html = f"<p>{escape_html(note)}</p>" if note else ""
    return f"<table>{caption_html}<thead>{head}</thead><tbody>{body}</tbody></table>{note_html}"


def _render_row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape_html(cell)}</{tag}>' for cell in cells)}</tr>"


class _Callable(ModuleType):
    """A package that is a function too: `farshift.splits` is a package, and `farshift.splits()` lists what it holds."""

    def __call__(self, *values: Any, **named: Any) -> Any:
        module_path, name = self.__dict__["_LISTS"]
        return getattr(import_module(f"{self.__name__.partition('.')[0]}.{module_path}"), name)(*values, **named)


def make_callable(package: str, module_path: str, name: str) -> None:
    """Calling the package calls the function `name` of the module `module_path`, relative to the whole package. It may
    be in a higher layer (a listing of splits knows their sources), so it is loaded when it is called."""
    module = sys.modules[package]
    module.__dict__["_LISTS"] = module_path, name
    module.__class__ = _Callable
