"""A listing: typed records in their order, with a short repr, HTML for notebooks, and a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

from .frame import to_data_frame
from .html import render_table

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


def has_words(search: str, *texts: str) -> bool:
    """Whether every word of `search` occurs in one of the texts, in any case."""
    joined = "\n".join(texts).casefold()
    return all(word in joined for word in search.casefold().split())
