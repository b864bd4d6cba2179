"""Measures of a split's rows, by name, for claims about data; they need no training."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.claims.outcome import Value
from ...core.draws import draw_permutation
from ...core.errors import BadDefinition, UnknownName
from ...loaders.acquire.source import find_source
from ...loaders.generators.coverage import rows as two_hop_rows
from ...loaders.part import Part
from ...loaders.split import open_split
from ...splits.catalogue import find_manifest
from ...splits.measures.coverage import count_rows_to_cover, find_covered
from ...splits.measures.divergence import measure_divergence
from ...splits.measures.inductive_bias import compute_bits, condition_process
from ...splits.measures.invariance import measure_broken_share

Matrix = NDArray[np.float64]
Predict = Callable[[Matrix], NDArray[np.float64]]


def least_squares_error(split: str, fit: str, part: str, field: str, inputs: list[int]) -> float:
    """The root mean squared error on a part of least squares with an intercept, fitted on the part `fit`, from the
    numbers of a field at the positions `inputs`, counted from 0; all if none are given. Within one part, even rows are
    predicted by a fit on odd ones, and odd by even."""
    truth, predictions = _predict_part(split, fit, part, field, inputs, _fit_least_squares)
    return float(np.sqrt(np.square(predictions - truth).mean()))


def logistic_accuracy(split: str, fit: str, part: str, field: str, inputs: list[int]) -> float:
    """The accuracy on a part of logistic regression with two classes and a negligible penalty, fitted and evaluated as
    in `least_squares_error`."""
    truth, predictions = _predict_part(split, fit, part, field, inputs, _fit_logistic)
    return float(np.mean(predictions == truth))


def _predict_part(
    split: str, fit: str, part: str, field: str, inputs: list[int], fitted: Callable[[Matrix, Matrix], Predict]
) -> tuple[Matrix, Matrix]:
    """Labels and predictions of the rows of a part."""
    (x, y), (queries, truth) = (_load_rows(split, part_name, field, inputs) for part_name in (fit, part))
    if fit != part:
        return truth, fitted(x, y)(queries)
    predictions = np.empty(len(y))
    for half in (0, 1):
        predictions[half::2] = fitted(x[1 - half :: 2], y[1 - half :: 2])(x[half::2])
    return y, predictions


def _load_rows(split: str, part: str, field: str, inputs: list[int]) -> tuple[Matrix, Matrix]:
    rows = open_split(split).part(part)
    x = np.asarray(rows.numpy()[field], np.float64)
    return (x[:, inputs] if inputs else x), np.asarray(rows.true_labels(), np.float64)


def _fit_least_squares(x: Matrix, y: Matrix) -> Predict:
    centre = x.mean(axis=0)
    weights, *_ = np.linalg.lstsq(x - centre, y - y.mean(), rcond=None)
    return lambda queries: np.asarray((queries - centre) @ weights + y.mean())


def _fit_logistic(x: Matrix, y: Matrix) -> Predict:
    from sklearn.linear_model import LogisticRegression

    centre, spread = x.mean(axis=0), x.std(axis=0)
    model = LogisticRegression(C=1e6, max_iter=10_000).fit((x - centre) / spread, y)
    return lambda queries: np.asarray(model.predict((queries - centre) / spread))


def inductive_bias(
    split: str, part: str, field: str, inputs: list[int], beyond: list[int], rows: int, error: float
) -> float:
    """The bits of inductive bias that a mean squared error of at most `error` on the first `rows` rows of a part
    requires of functions that are right on the first `rows` of training (Boopathy et al. 2024): of the numbers of a
    field at the positions `inputs`, standardised, all if none are given, to classes 0 and 1 as -1 and 1, with an RBF
    kernel of width 1. With positions in `beyond`, less the bits that these require alone."""

    def compute(positions: list[int]) -> float:
        (x, y), (queries, truth) = (_load_rows(split, part_name, field, positions) for part_name in ("train", part))
        x, y, queries, truth = x[:rows], y[:rows], queries[:rows], truth[:rows]
        centre, spread = x.mean(axis=0), x.std(axis=0)
        mean, covariance = condition_process((x - centre) / spread, 2 * y - 1, (queries - centre) / spread, width=1.0)
        return compute_bits(mean - (2 * truth - 1), covariance, error)

    return compute(inputs) - (compute(beyond) if beyond else 0.0)


def broken_invariance(split: str, environments: int, part: str, field: str, epsilon: float) -> float:
    """The share of a part's groups in which a set of inputs is not epsilon-invariant, on average over the sets that are
    so in the first `environments` training groups, in the order of their names' numbers (Parulekar et al. 2023)."""
    train, test = (_group_environments(open_split(split).part(name), field) for name in ("train", part))
    return measure_broken_share(train[:environments], test, epsilon)


def _group_environments(part: Part, field: str) -> list[tuple[Matrix, Matrix]]:
    """A field's numbers and the labels of each group, by the number in which its name ends."""
    groups = np.asarray(part.arrow(["group"])["group"].to_pylist(), np.str_)
    x, labels = np.asarray(part.numpy([field])[field], np.float64), np.asarray(part.true_labels(), np.float64)
    names = sorted(set(groups.tolist()), key=lambda name: int(name.split()[-1]))
    return [(x[groups == name], labels[groups == name]) for name in names]


def noise_rate(split: str) -> float:
    """The share of training rows whose observed label is not the true one."""
    train = open_split(split).part("train")
    return float(np.mean(train.true_labels() != train.observed_labels()))


def rows(split: str, part: str) -> int:
    """The number of rows of a part, duplicates included."""
    return open_split(split).part(part).weighted_rows


def digest(split: str, part: str, fields: str) -> str:
    """The first 16 hexadecimal digits of sha256 over a part's distinct rows, sorted: the fields named, separated by
    tabs, each row ended by a line break."""
    texts = _read_texts(open_split(split).part(part), fields)
    return sha256("".join(sorted({"\t".join(row) + "\n" for row in zip(*texts, strict=True)})).encode()).hexdigest()[
        :16
    ]


def overlap(split: str, part: str, fields: str) -> float:
    """The share of a part's rows whose combination of fields occurs in the training rows too."""
    known = set(zip(*_read_texts(open_split(split).part("train"), fields), strict=True))
    part_rows = list(zip(*_read_texts(open_split(split).part(part), fields), strict=True))
    return sum(row in known for row in part_rows) / len(part_rows)


def longest(split: str, part: str, field: str) -> int:
    """The maximum number of words in a field of a part."""
    return max(len(text.split()) for text in _read_texts(open_split(split).part(part), field)[0])


def shortest(split: str, part: str, field: str) -> int:
    """The minimum number of words in a field of a part."""
    return min(len(text.split()) for text in _read_texts(open_split(split).part(part), field)[0])


def unseen_words(split: str, part: str, field: str) -> int:
    """The number of distinct words that occur in a part but not in training."""
    train, texts = (_read_texts(open_split(split).part(part_name), field)[0] for part_name in ("train", part))
    return measure_divergence(train, texts).unseen_atoms


def coverage(split: str, part: str, state: str, fragment: str, context: str, evidence: int) -> float:
    """The share of a part's rows within coverage of training (Chang et al. 2025): each a `fragment` of its fields in a
    `context`, and `state` the fields that determine the effect of a fragment."""
    train, part_numbers = (
        _combine_fields(open_split(split).part(part_name), (state, fragment, context)) for part_name in ("train", part)
    )
    return float(find_covered(train, part_numbers, evidence).mean())


def growth_of_rows_to_cover(split: str, tokens: list[int], evidence: int, share: float) -> float:
    """The least-squares exponent c of N = n^c: for each n of `tokens` in the split's task, N is the number of rows with
    known hops that put `share` of them within coverage. Rows and functions are generated for each n."""
    definition, rule = find_manifest(split).definition, find_manifest(split).definition.parameters
    (options,) = [
        dict(distribution.options) for distribution in find_source(definition.source.name).definition.distributions
    ]
    if options["structure"] != "two_hop":
        raise BadDefinition(
            f"growth_of_rows_to_cover needs two hops in a chain, and {split} has {options['structure']}"
        )
    needed = []
    for count in tokens:
        seed = f"{options['seed']}/{count} tokens"
        table = two_hop_rows(seed=seed, tokens=count, structure="two_hop")
        x1, x2, x3, bridge = (table[name].to_numpy() for name in ("x1", "x2", "x3", "bridge"))
        pairs = np.stack([bridge, x1 * count + x2, x3], axis=1)
        known = np.ones(len(pairs), bool)
        for name, codes in ("first", pairs[:, 1]), ("second", bridge * count + x3):
            drawn = draw_permutation(f"{seed}/{name}", np.arange(count**2, dtype=np.uint64))
            known &= np.isin(codes, drawn[: round(rule["known"] * count**2)])
        inside = np.flatnonzero(known)
        order = draw_permutation(f"{seed}/train", inside.astype(np.uint64))
        needed.append(count_rows_to_cover(pairs[inside[order]], share, evidence))
    return float(np.polyfit(np.log(tokens), np.log(needed), 1)[0])


def _combine_fields(part: Part, fields: tuple[str, ...]) -> NDArray[np.int64]:
    """Groups of integer fields, named with commas between them, as one number each: shape (rows, groups)."""
    table = part.arrow([name for group in fields for name in group.split(",")])
    columns = []
    for group in fields:
        numbers = np.zeros(table.num_rows, np.int64)
        for name in group.split(","):
            numbers = numbers * 2**20 + table[name].to_numpy()
        columns.append(numbers)
    return np.stack(columns, axis=1)


def _read_texts(part: Part, fields: str) -> list[list[str]]:
    """The named fields of a part as texts, a list each."""
    table = part.arrow(fields.split(","))
    return [[str(value) for value in table[name].to_pylist()] for name in fields.split(",")]


MEASURES: dict[str, Callable[..., Value]] = {
    function.__name__: function
    for function in (
        broken_invariance,
        coverage,
        digest,
        growth_of_rows_to_cover,
        inductive_bias,
        least_squares_error,
        logistic_accuracy,
        longest,
        noise_rate,
        overlap,
        rows,
        shortest,
        unseen_words,
    )
}


def compute_fact(measure: str, split: str, arguments: dict[str, Any]) -> Value:
    """Compute a measure by name; `UnknownName` for an unknown one, `BadDefinition` for wrong arguments."""
    if measure not in MEASURES:
        raise UnknownName("measure", measure, MEASURES)
    takes = set(MEASURES[measure].__annotations__) - {"split", "return"}
    if set(arguments) != takes:
        raise BadDefinition(f"{measure} accepts {', '.join(sorted(takes)) or 'nothing but the split'}: {arguments}")
    return MEASURES[measure](split, **arguments)
