"""Inputs as the named columns of a pandas DataFrame, for estimators that select columns by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import MissingExtra, ModelError, shorten_list

if TYPE_CHECKING:
    import pandas as pd


def selects_by_name(estimator: Any) -> bool:
    """Whether a `ColumnTransformer` in the estimator selects columns by name or type, which needs a DataFrame."""
    return any(
        isinstance(columns, str) or hasattr(columns, "dtype_include") or bool(_list_column_names(columns))
        for columns in _iterate_selections(estimator)
    )


def _iterate_selections(estimator: Any) -> Iterator[Any]:
    """Yield the column selections of each `ColumnTransformer` that reads the inputs themselves: the estimator, the
    first step of a pipeline, a part of a union, the estimator within a search or one of a voting ensemble."""
    if transformers := getattr(estimator, "transformers", None):
        yield from (columns for _, _, columns in transformers)
    if steps := getattr(estimator, "steps", None):
        yield from _iterate_selections(steps[0][1])
    for name in ("transformer_list", "estimators"):
        for part in getattr(estimator, name, None) or ():
            yield from _iterate_selections(part[1] if isinstance(part, tuple) else part)
    if (inner := getattr(estimator, "estimator", None)) is not None:
        yield from _iterate_selections(inner)


def _list_column_names(columns: Any) -> list[str]:
    if isinstance(columns, str):
        return [columns]
    return (
        [column for column in columns if isinstance(column, str)]
        if isinstance(columns, list | tuple | np.ndarray)
        else []
    )


def make_frame(columns: Mapping[str, NDArray[Any]], estimator: Any) -> pd.DataFrame:
    """Return a DataFrame of n rows with a column for each input: numbers in their own type, texts as objects; a tensor
    has a column for each of its numbers (`x[0]`, `x[1]` ..). `MissingExtra` without pandas, `ModelError` if the
    estimator selects a column that does not exist."""
    try:
        import pandas as pd
    except ImportError as error:
        what = f"{type(estimator).__name__} on inputs as the columns of a pandas DataFrame"
        raise MissingExtra(what, "notebook") from error
    series: dict[str, Any] = {}
    for name, values in columns.items():
        if values.ndim == 1:
            series[name] = pd.Series(values, dtype=values.dtype)  # keep the object type: pandas would infer another one
        else:
            flat = values.reshape(len(values), -1)
            series |= {f"{name}[{index}]": flat[:, index] for index in range(flat.shape[1])}
    if unknown := [
        name
        for selection in _iterate_selections(estimator)
        for name in _list_column_names(selection)
        if name not in series
    ]:
        raise ModelError(
            f"{type(estimator).__name__} selects the column {unknown[0]!r}: the inputs are {shorten_list(list(series))}"
        )
    return pd.DataFrame(series)
