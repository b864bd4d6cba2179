"""The audit: measured proof of what shift a split holds.

A split that does not hold the shift it names fails its audit (`holds` is false, `why` says so).
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .assignment import PARTS
from .manifest import Definition
from .probe import domain_probe
from .rows import heads, row_digests
from .schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

# (z of 0.975) + (z of 0.8): a two-sided 5 % test finds the difference in 80 % of samples.
_POWER = 1.959964 + 0.841621
_DISCORDANT = 0.1


def minimum_detectable_difference(rows: int) -> float:
    """The smallest paired difference in accuracy found with 80 % power at the 5 % level, when two models
    disagree in correctness on 10 % of the rows: 2.80 * sqrt(0.1 / rows)."""
    return float(_POWER * np.sqrt(_DISCORDANT / rows))


def audit(definition: Definition, source: pa.Table, assigned: pa.Table, schema: Schema) -> dict[str, Any]:
    """Measure a split. `source` has the fields, `row_id` and `check`; `assigned` is the manifest's rows."""
    parts = {name: _rows_of(name, source, assigned) for name in PARTS}
    parts = {name: table for name, table in parts.items() if table.num_rows}
    found: dict[str, Any] = {
        "rows": {name: table.num_rows for name, table in parts.items()},
        "dropped": source.num_rows - assigned.num_rows,
        "duplicate_inputs": _duplicates(parts, schema),
        "labels": _labels(definition, parts),
        "minimum_detectable_difference": {
            name: round(minimum_detectable_difference(table.num_rows), 4)
            for name, table in parts.items()
            if name.endswith("test")
        },
    }
    found |= {
        name: value
        for name, value in (
            ("tokens", _tokens(parts, schema)),
            ("severity", _severity(parts)),
            ("groups", _groups(parts)),
            ("noise", _noise(definition, parts)),
            ("probe", domain_probe(definition, parts, schema)),
        )
        if value
    }
    holds, why = _verdict(definition, found)
    return {
        "split": f"{definition.name}@{definition.version}",
        "kind": definition.kind,
        "holds": holds,
        "why": why,
        **found,
    }


def same(left: Any, right: Any) -> bool:
    """Whether two audits agree: numbers within 0.002 where not whole (linear algebra differs in last digits)."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float) and isinstance(right, float):
        return abs(left - right) <= 0.002
    return bool(left == right)


def _rows_of(part: str, source: pa.Table, assigned: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    rows = assigned.filter(pc.equal(assigned["part"], part))
    places = np.searchsorted(source["row_id"].to_numpy(), rows["row_id"].to_numpy())
    table = source.take(places)
    for name in ("weight", "group", "severity", "label"):
        if name in rows.column_names:
            table = table.append_column(f"its {name}", rows[name])
    return table


def _duplicates(parts: dict[str, pa.Table], schema: Schema) -> dict[str, dict[str, int]]:
    """Rows of equal inputs: beyond the first within each part, and in common between two parts."""
    inputs = Schema(schema.of_role("input"))
    digests = {
        name: heads(row_digests(table.select([f.name for f in inputs.fields]), inputs)) for name, table in parts.items()
    }
    return {
        "within": {name: len(values) - len(np.unique(values)) for name, values in digests.items()},
        "across": {f"{a}/{b}": len(np.intersect1d(digests[a], digests[b])) for a, b in combinations(digests, 2)},
    }


def _labels(definition: Definition, parts: dict[str, pa.Table]) -> dict[str, Any]:
    """Distinct labels a part, and how far its marginal lies from training's (total variation, 0 to 1)."""
    counts = {name: _count(table[definition.label].to_pylist()) for name, table in parts.items()}
    distinct = {name: len(count) for name, count in counts.items()}
    if "train" not in counts or max(distinct.values()) > 1000:
        return {"distinct": distinct}
    shift = {
        name: round(_total_variation(counts["train"], count), 4) for name, count in counts.items() if name != "train"
    }
    return {"distinct": distinct, "total_variation_from_train": shift}


def _count(values: list[Any]) -> dict[Any, int]:
    count: dict[Any, int] = {}
    for value in values:
        count[value] = count.get(value, 0) + 1
    return count


def _total_variation(left: dict[Any, int], right: dict[Any, int]) -> float:
    n, m = sum(left.values()), sum(right.values())
    return sum(abs(left.get(key, 0) / n - right.get(key, 0) / m) for key in {*left, *right}) / 2


def _tokens(parts: dict[str, pa.Table], schema: Schema) -> dict[str, Any]:
    """For each text input with words: tokens and compounds (neighbouring tokens) of a test part unseen in training."""
    found: dict[str, Any] = {}
    for field in schema.of_role("input"):
        if field.type != "string" or "train" not in parts:
            continue
        texts = {name: [row.split() for row in table[field.name].to_pylist()] for name, table in parts.items()}
        if all(len(row) < 2 for row in texts["train"]):
            continue
        atoms = {token for row in texts["train"] for token in row}
        compounds = {pair for row in texts["train"] for pair in pairwise(row)}
        found[field.name] = {
            name: {
                "unseen_tokens": len({token for row in rows for token in row} - atoms),
                "rows_with_unseen_compound": round(
                    sum(any(pair not in compounds for pair in pairwise(row)) for row in rows) / len(rows),
                    4,
                ),
            }
            for name, rows in texts.items()
            if name != "train"
        }
    return found


def _severity(parts: dict[str, pa.Table]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, table in parts.items():
        if "its severity" in table.column_names:
            values = table["its severity"].to_numpy()
            found[name] = {
                "min": values.min().item(),
                "max": values.max().item(),
                "mean": round(float(values.mean()), 3),
            }
    return found


def _groups(parts: dict[str, pa.Table]) -> dict[str, Any]:
    return {
        name: dict(sorted(_count(table["its group"].to_pylist()).items()))
        for name, table in parts.items()
        if "its group" in table.column_names and len(table["its group"].unique()) <= 100
    }


def _noise(definition: Definition, parts: dict[str, pa.Table]) -> dict[str, Any]:
    """Overridden labels a part: how many, how many of them truly differ, and the true rate."""
    found: dict[str, Any] = {}
    for name, table in parts.items():
        if "its label" not in table.column_names:
            continue
        given, truth = table["its label"].to_pylist(), table[definition.label].to_pylist()
        overridden = sum(value is not None for value in given)
        wrong = sum(value is not None and value != true for value, true in zip(given, truth, strict=True))
        found[name] = {"overridden": overridden, "wrong": wrong, "true_rate": round(wrong / len(truth), 4)}
    return found


def _verdict(definition: Definition, found: dict[str, Any]) -> tuple[bool, str]:
    kind, severity = definition.kind, found.get("severity", {})
    leaks = sum(count for pair, count in found["duplicate_inputs"]["across"].items() if pair.startswith("train/"))
    if leaks:
        return False, f"{leaks} test inputs stand in the training part too"
    if kind in ("length", "easy-to-hard"):
        if not {"train", "ood_test"} <= severity.keys():
            return False, "no severity in train and ood_test"
        easy, hard = severity["train"]["max"], severity["ood_test"]["min"]
        return easy < hard, f"training reaches severity {easy}, ood_test begins at {hard}"
    if kind == "compositional":
        tokens = [part["ood_test"] for part in found.get("tokens", {}).values() if "ood_test" in part]
        unseen = sum(item["unseen_tokens"] for item in tokens)
        novel = max((item["rows_with_unseen_compound"] for item in tokens), default=0.0)
        return (
            unseen == 0 and novel > 0.5,
            f"{unseen} unseen tokens; {novel:.0%} of ood_test rows hold an unseen compound",
        )
    if kind == "corrupted-label":
        noise = found.get("noise", {})
        wrong = noise.get("train", {})
        clean = all(not item["wrong"] for name, item in noise.items() if name != "train")
        holds = clean and wrong.get("wrong", 0) > 0 and wrong["wrong"] == wrong["overridden"]
        rows = found["rows"].get("train", 0)
        return holds, f"{wrong.get('wrong', 0)} of {rows} training labels are wrong, test labels are not"
    return _domain_verdict(found)


def _domain_verdict(found: dict[str, Any]) -> tuple[bool, str]:
    groups = {name: set(values) for name, values in found.get("groups", {}).items()}
    shared = sorted(groups.get("train", set()) & groups.get("ood_test", set()))
    if shared or not groups:
        return False, f"domains in train and ood_test: {', '.join(shared) or 'none are named'}"
    probe = found.get("probe")
    if not probe:
        return True, "domains are disjoint"
    drop = probe["id_accuracy"] - probe["ood_accuracy"]
    strength = "weak" if drop < 0.05 else "strong"
    return True, (
        f"domains are disjoint; the shift is {strength}: a linear probe loses {100 * drop:.1f} points, "
        f"and tells the domains apart with AUROC {probe['domain_auroc']:.2f}"
    )
