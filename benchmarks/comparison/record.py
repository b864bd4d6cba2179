"""The comparison of two runs as a typed record, as returned by `fs.compare`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.listings import render_table, to_data_frame
from ..statistics.not_available import NotAvailable, read_available

if TYPE_CHECKING:
    import pandas as pd

VIEWS = ("id", "ood", "gap")


@dataclass(frozen=True)
class Difference:
    """Left minus right, with its paired 95 % interval. distinguishable: whether the interval excludes zero; None if a
    run has a single seed. detail: the rest of the record, such as the standard errors and the number of rows."""

    value: float
    low: float
    high: float
    distinguishable: bool | None
    detail: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Difference:
        """What `to_dict` wrote."""
        return cls(record["value"], record["low"], record["high"], record["distinguishable"], dict(record))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return dict(self.detail)

    def __str__(self) -> str:
        words = {True: "distinguishable", False: "not distinguishable", None: "more seeds needed"}
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}], {words[self.distinguishable]}"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two runs on one benchmark compared by its primary metric, left minus right. seeds: the number of seeds of `left`
    and `right`. interval: a description of the intervals."""

    benchmark: str
    left: str
    right: str
    seeds: Mapping[str, int]
    id: Difference | NotAvailable
    ood: Difference | NotAvailable
    gap: Difference | NotAvailable
    interval: str

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Comparison:
        """What `to_dict` wrote."""
        rest: dict[str, Any] = {name: record[name] for name in ("benchmark", "left", "right", "seeds", "interval")}
        rest |= {name: read_available(Difference.from_dict, record["difference"][name]) for name in VIEWS}
        return cls(**rest)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "benchmark": self.benchmark,
            "left": self.left,
            "right": self.right,
            "seeds": dict(self.seeds),
            "difference": {name: _write_difference(getattr(self, name)) for name in VIEWS},
            "interval": self.interval,
        }

    def __repr__(self) -> str:
        lines = [f"{self.left} minus {self.right} on {self.benchmark}"]
        return "\n".join([*lines, *(f"{name:>5}  {_format_difference(getattr(self, name))}" for name in VIEWS)])

    def _repr_html_(self) -> str:
        rows = [{"score": name, "difference": _format_difference(getattr(self, name))} for name in VIEWS]
        return render_table(rows, f"{self.left} minus {self.right} on {self.benchmark}", self.interval)

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame with one row each for ID, OOD and gap. Raises `MissingExtra` without pandas."""
        named = {"benchmark": self.benchmark, "left": self.left, "right": self.right}
        return to_data_frame([named | {"score": name} | _write_difference(getattr(self, name)) for name in VIEWS])


def _format_difference(difference: Difference | NotAvailable) -> str:
    return f"n/a ({difference.reason})" if isinstance(difference, NotAvailable) else str(difference)


def _write_difference(difference: Difference | NotAvailable) -> dict[str, Any]:
    return difference.to_dict() | ({"distinguishable": None} if isinstance(difference, NotAvailable) else {})
