"""Plot a split's audit: severity, labels, groups, and the distances between train and ood_test, as far as it has them.

The figure depends on `audit.json` alone. Colours are those of Okabe and Ito (Color Universal Design, 2008); a part has
the same colour in every panel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...core.figures import use_plot_settings
from ..assignment import PARTS
from ..measures.divergence import ATOMS, COMPOUNDS
from .parted import RANDOM

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Audit = Mapping[str, Any]

_COLOURS = dict(zip(PARTS, ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"), strict=True))
_SHOWN, _LETTERS, _LINE, _ROOM = 12, 20, 118, 12
_SCALARS = {
    "new factor combination": ("factors", "PART", "rows_with_unseen_combination"),
    "labels, total variation": ("labels", "total_variation_from_train", "PART"),
    "labels, Kolmogorov-Smirnov": ("labels", "kolmogorov_smirnov_from_train", "PART"),
    "groups, total variation": ("groups", "total_variation_from_train", "PART"),
    "near duplicates of train": ("near_duplicates", "with_train", "PART"),
    "domain AUROC": ("probe", "domain_auroc"),
    "diversity shift": ("diversity_and_correlation", "diversity"),
    "correlation shift": ("diversity_and_correlation", "correlation"),
    "wrong training labels": ("noise", "train", "true_rate"),
}
"""Scalar measures and their paths in an audit; PART is the part that is compared."""

_BAND = 0.8
"""The share of a category's width or height that its bars fill."""

_LEAST_BARS, _LEAST_PARTS = 6, 2
"""With fewer bars, or bars of fewer parts, each bar is as thin as with this many."""

_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "savefig.dpi": 200,
    # A group may be called "$x$": do not typeset it as mathematics.
    "text.parse_math": False,
}


def render_png(audit: Audit, classes: Sequence[str] = ()) -> bytes:
    """Render the figure as a PNG file with 200 dots per inch; the same audit gives the same bytes under one version of
    matplotlib. `MissingExtra` without matplotlib. classes: see `draw_figure`."""
    content = BytesIO()
    audit_figure = draw_figure(audit, classes)
    with use_plot_settings(_SETTINGS):
        audit_figure.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()


def draw_figure(audit: Audit, classes: Sequence[str] = ()) -> Figure:
    """Draw an audit (the content of `audit.json`) as a matplotlib `Figure`. `MissingExtra` without matplotlib. classes:
    the names of the label's classes 0, 1 .., if they have names."""
    with use_plot_settings(_SETTINGS):
        from matplotlib.figure import Figure as Empty
        from matplotlib.gridspec import GridSpec
        from matplotlib.patches import Patch

        distances = _list_distances(audit, _find_test_part(audit))
        panels: list[Callable[[Axes, Audit], None]] = [
            *([_draw_severity] if audit.get("severity_histogram") else []),
            *([partial(_draw_labels, classes=classes)] if audit["labels"].get("shares") else []),
            *([_draw_groups] if "groups" in audit else []),
            *([partial(_draw_measures, distances=distances)] if distances else []),
        ]
        columns, floors = min(2, len(panels)), -(-len(panels) // 2)
        tall = 0.6 + 2.8 * floors + 0.3 * max(0, len(distances) - _ROOM)
        audit_figure = Empty(figsize=(3.8 * max(columns, 1.6), tall), layout="constrained")
        verdict = "holds" if audit["holds"] else "DOES NOT HOLD"
        why = wrap(audit["why"], _LINE, max_lines=4, placeholder=" …")
        lines = [f"{audit['split']} ({audit['kind']} shift): {verdict}", *why]
        audit_figure.suptitle("\n".join(lines), x=0.01, ha="left", size=8.5)
        grid = GridSpec(max(floors, 1), max(columns, 1), figure=audit_figure)
        # The last of an odd number of panels is as wide as two.
        for number, draw in enumerate(panels):
            width = columns if number == len(panels) - 1 and number % 2 == 0 else 1
            draw(audit_figure.add_subplot(grid[number // 2, number % 2 : number % 2 + width]), audit)
        parts = [Patch(color=_COLOURS[name], label=f"{name} ({rows:,} rows)") for name, rows in audit["rows"].items()]
        audit_figure.legend(handles=parts, loc="outside lower center", ncols=min(3, len(parts)), handlelength=1.0)
        # Ticks are created at the first layout: do it now, while the settings apply.
        audit_figure.draw_without_rendering()
    return audit_figure


def _draw_severity(axes: Axes, audit: Audit) -> None:
    axes.set_title("Severity")
    histogram = audit["severity_histogram"]
    shares = {name: [n / max(sum(counts), 1) for n in counts] for name, counts in histogram["counts"].items()}
    axes.set_ylabel("share of the part's rows")
    if "values" in histogram:
        return _draw_bars(axes, [f"{value:g}" for value in histogram["values"]], shares)
    edges = histogram["edges"]
    for name, values in shares.items():
        axes.stairs(values, edges, fill=True, alpha=0.2, color=_COLOURS[name])
        axes.stairs(values, edges, color=_COLOURS[name], linewidth=1.2)
    return None


def _draw_labels(axes: Axes, audit: Audit, classes: Sequence[str]) -> None:
    title = "True labels" if "noise" in audit else "Labels"
    axes.set_title(title)
    shares = audit["labels"]["shares"]
    axes.set_ylabel("share of the part's rows")
    called = {str(number): name for number, name in enumerate(classes)}
    names, columns = _select_commonest(shares, dict.fromkeys(shares, 1.0), _LETTERS // 2, called)
    most = max(audit["labels"]["distinct"].values())
    if most > len(names):
        axes.set_title(f"{title}: the {len(names)} commonest of {most}")
    _draw_bars(axes, names, columns)


def _draw_groups(axes: Axes, audit: Audit) -> None:
    axes.set_title("Groups")
    names, columns = _select_commonest(audit["groups"]["rows"], audit["rows"], _LETTERS)
    rest = {part: audit["rows"][part] - sum(values) for part, values in columns.items()}
    if any(rest.values()):
        names.append("(others)")
        columns = {part: [*values, rest[part]] for part, values in columns.items()}
    axes.set_xlabel("rows")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _draw_bars(axes, names, columns, upright=False)


def _draw_measures(axes: Axes, audit: Audit, distances: Sequence[tuple[str, float, float | None]]) -> None:
    test = _find_test_part(audit)
    axes.set_title(f"From train to {test}")
    for index, (_, value, chance) in enumerate(distances):
        axes.barh(index, value, _BAND, color=_COLOURS[test])
        if chance is not None:
            axes.plot([chance, chance], [index - _BAND / 2, index + _BAND / 2], color="black", linewidth=1.5)
        axes.text(max(value, chance or 0.0) + 0.02, index, f"{value:.2f}", va="center", size=7)
    axes.set_yticks(range(len(distances)), [name for name, _, _ in distances])
    axes.set_ylim(max(len(distances), _LEAST_BARS) - 0.5, -0.5)
    axes.set_xlim(0, 1.12)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    if any(chance is not None for _, _, chance in distances):
        axes.set_xlabel("black line: by chance")


def _find_test_part(audit: Audit) -> str:
    """The part that is compared with training."""
    return "ood_test" if "ood_test" in audit["rows"] else "id_test"


def _list_distances(audit: Audit, test: str) -> list[tuple[str, float, float | None]]:
    """Return the distances between train and a test part: name, value, and the value by chance (of a random split of
    the same rows) if known."""
    distances: list[tuple[str, float, float | None]] = []
    for field, parts in audit.get("texts", {}).items():
        if test not in parts:
            continue
        chance = parts.get(RANDOM, {})
        name = _shorten_name(field, _LETTERS // 2)
        for what, alpha in (("tokens", str(ATOMS)), ("pairs", str(COMPOUNDS)), ("triples", str(COMPOUNDS))):
            if what in parts[test]["divergence"]:
                by_chance = chance.get("divergence", {}).get(what, {}).get(alpha)
                distances.append((f"{name}: {what} diverge", parts[test]["divergence"][what][alpha], by_chance))
        key = "rows_with_unseen_pair"
        distances.append((f"{name}: rows with new pair", parts[test][key], chance.get(key)))
    for name, path in _SCALARS.items():
        value, chance = (
            _get_nested(audit, [part if key == "PART" else key for key in path]) for part in (test, RANDOM)
        )
        if value is not None:
            distances.append((name, value, chance if "PART" in path else None))
    return distances


def _get_nested(audit: Any, path: Sequence[str]) -> float | None:
    for key in path:
        audit = audit.get(key, {})
    return audit if isinstance(audit, float) else None


def _select_commonest(
    columns: Mapping[str, Mapping[str, float]],
    totals: Mapping[str, float],
    letters: int,
    called: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[str], dict[str, list[float]]]:
    """Return the 12 names with the largest shares, shortened, and each part's values for them. called: labels to write
    instead of names."""
    names = list(dict.fromkeys(name for values in columns.values() for name in values))
    weight = {name: sum(values.get(name, 0) / totals[part] for part, values in columns.items()) for name in names}
    largest = sorted(sorted(names, key=lambda name: -weight[name])[:_SHOWN], key=_make_sort_key)
    shares = {part: [values.get(name, 0) for name in largest] for part, values in columns.items()}
    return _shorten_names([called.get(name, name) for name in largest], letters), shares


def _make_sort_key(name: str) -> tuple[int, float, str]:
    """Sort numbers numerically, before other names alphabetically."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name


def _draw_bars(
    axes: Axes, names: Sequence[str], columns: Mapping[str, Sequence[float]], *, upright: bool = True
) -> None:
    """Draw for each name the bars of the parts that have it, side by side."""
    width = _BAND / max(len(columns), _LEAST_PARTS)
    draw = axes.bar if upright else axes.barh
    for index in range(len(names)):
        present = [(part, values[index]) for part, values in columns.items() if values[index]]
        for k, (part, value) in enumerate(present):
            draw(index + (k - (len(present) - 1) / 2) * width, value, width, color=_COLOURS[part])
    if upright:
        crowded = sum(map(len, names)) > 40
        axes.set_xticks(range(len(names)), names, rotation=90 if crowded else 0)
        axes.set_xlim(-0.6, len(names) - 0.4)
        return
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(len(names), _LEAST_BARS) - 0.5, -0.5)
    axes.locator_params(axis="x", nbins=5)


def _shorten_names(names: Sequence[str], letters: int) -> list[str]:
    """Shorten each name so that different names stay different; number them where no cut does that."""
    for head in (0.5, 0.25, 0.75, 0.0, 1.0):
        short = [_shorten_name(name, letters, head) for name in names]
        if len(set(short)) == len(names):
            return short
    return [f"{_shorten_name(name, letters - 4)} #{k}" for k, name in enumerate(names, 1)]


def _shorten_name(name: str, letters: int, head: float = 0.5) -> str:
    """Cut the name to this many letters; `head` is the share that is kept of its beginning."""
    if len(name) <= letters:
        return name
    start = round(head * (letters - 1))
    return f"{name[:start]}…{name[len(name) - (letters - 1 - start) :]}"
