"""ID against OOD: a point for each entry, and the line fitted to the entries (Taori et al., NeurIPS 2020; Miller et
al., ICML 2021). An entry above the line has a higher OOD score than its ID score predicts."""

from __future__ import annotations

from collections.abc import Sequence

from ....benchmarks.derived.robustness import FEWEST, Line, Point, fit_line
from ....benchmarks.plot.id_ood import choose_ticks, clip_line, clip_to_logit, compute_limits, expit, logit
from ....benchmarks.scoring.record import Score
from ..page_graphics import SHARE, format_score
from .svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Axis,
    Figure,
    draw_axes,
    draw_label,
    draw_line,
    draw_marker,
    draw_path,
    draw_svg,
)

SIDE = 420
"""Side of the plot, which is square because both axes have the same scale."""


def make_scatter_figure(scores: Sequence[Score], names: Sequence[str]) -> Figure | None:
    """Return the scatter plot of the entries of one table on logit axes; None for fewer than two entries, or for a
    metric that is not between 0 and 1 with higher being better. names: the names of the entries.

    With at least three different ID scores, the least-squares line logit(OOD) = a + b logit(ID) through all entries is
    drawn."""
    if len(scores) < 2 or any(score.bounds != SHARE or score.better != "higher" for score in scores):
        return None
    low, high = compute_limits([estimate for score in scores for estimate in (score.id, score.ood)])
    x = Axis(logit(low), logit(high), LEFT, SIDE - RIGHT)
    y = Axis(logit(low), logit(high), SIDE - BOTTOM, TOP)
    marks = [(logit(tick), f"{100 * tick:g}") for tick in choose_ticks(low, high)]
    content = draw_axes(x, y, ("ID score (%)", "OOD score (%)"), marks, marks)
    content.append(draw_line("equal", x.first, y.first, x.last, y.last))
    fitted = _fit_entry_line(scores)
    if fitted is not None:
        ends = clip_line(fitted, logit(low), logit(high))
        content.append(draw_path("fit", [(x.at(at), y.at(fitted.intercept + fitted.slope * at)) for at in ends]))
    many = len(scores) > 40
    rows = []
    for name, score in zip(names, scores, strict=True):
        on_id, on_ood = clip_to_logit(score.id), clip_to_logit(score.ood)
        at, to = x.at(logit(on_id.value)), y.at(logit(on_ood.value))
        if not many:
            content.append(draw_line("reach", x.at(logit(on_id.low)), to, x.at(logit(on_id.high)), to))
            content.append(draw_line("reach", at, y.at(logit(on_ood.low)), at, y.at(logit(on_ood.high))))
        tooltip = f"{name}: ID {format_score(score.id.value, SHARE)}, OOD {format_score(score.ood.value, SHARE)}"
        content.append(draw_marker(0, at, to, tooltip))
        beyond = ""
        if fitted is not None:
            beyond = f"{100 * (on_ood.value - expit(fitted.intercept + fitted.slope * logit(on_id.value))):+z.1f}"
        rows.append(
            (name, format_score(score.id.value, SHARE), format_score(score.ood.value, SHARE), beyond.replace("-", "−"))
        )
    if len(scores) <= 3:
        content += [
            draw_label(
                x.at(logit(clip_to_logit(score.id).value)), y.at(logit(clip_to_logit(score.ood).value)) - 9, name
            )
            for name, score in zip(names, scores, strict=True)
            if len(name) <= 24 and LEFT + 60 < x.at(logit(clip_to_logit(score.id).value)) < SIDE - 60
        ]
    caption = "Each point is an entry" + ("" if many else ", with 95 % intervals") + "; dashed: OOD equal to ID."
    if fitted is not None:
        caption += " Solid: the line fitted to the entries; above it, OOD is higher than ID predicts."
    return Figure(
        draw_svg(content, "OOD score against ID score", SIDE, SIDE),
        "ID against OOD",
        caption,
        ("entry", "ID (%)", "OOD (%)", "above the line (points)"),
        tuple(rows),
    )


def _fit_entry_line(scores: Sequence[Score]) -> Line | None:
    points = [Point(score.id.value, score.ood.value, score.id.rows, score.ood.rows) for score in scores]
    return fit_line(points) if len({point.id for point in points}) >= FEWEST else None
