"""ID against OOD: a point for each entry, and the line that the entries lie on (Taori et al., NeurIPS 2020; Miller et
al., ICML 2021). An entry above the line carries its skill further than its ID score lets expect."""

from __future__ import annotations

from collections.abc import Sequence

from ....benchmarks.derived.robustness import FEWEST, Line, Point, fit_line
from ....benchmarks.plot.id_ood import expit, inside, limits, logit, ticks, within
from ....benchmarks.scoring.record import Score
from ..page_pictures import SHARE, shown
from .drawing import BOTTOM, LEFT, RIGHT, TOP, Axis, Figure, drawn, frame, label, line, marker, path

SIDE = 420
"""The plot is square: both axes have one scale."""


def scatter(scores: Sequence[Score], names: Sequence[str]) -> Figure | None:
    """The scatter of the entries of one table on logit axes; None for fewer than two entries, or for a metric that does
    not lie from 0 to 1 with more being better. names: what each entry is called.

    From three different ID scores on the least-squares line logit(OOD) = a + b logit(ID) is drawn through all
    entries."""
    if len(scores) < 2 or any(one.bounds != SHARE or one.better != "higher" for one in scores):
        return None
    low, high = limits([found for one in scores for found in (one.id, one.ood)])
    x = Axis(logit(low), logit(high), LEFT, SIDE - RIGHT)
    y = Axis(logit(low), logit(high), SIDE - BOTTOM, TOP)
    marks = [(logit(tick), f"{100 * tick:g}") for tick in ticks(low, high)]
    content = frame(x, y, ("ID score (%)", "OOD score (%)"), marks, marks)
    content.append(line("equal", x.first, y.first, x.last, y.last))
    fitted = _fitted(scores)
    if fitted is not None:
        ends = within(fitted, logit(low), logit(high))
        content.append(path("fit", [(x.at(at), y.at(fitted.intercept + fitted.slope * at)) for at in ends]))
    many = len(scores) > 40
    rows = []
    for name, one in zip(names, scores, strict=True):
        on_id, on_ood = inside(one.id), inside(one.ood)
        at, to = x.at(logit(on_id.value)), y.at(logit(on_ood.value))
        if not many:
            content.append(line("reach", x.at(logit(on_id.low)), to, x.at(logit(on_id.high)), to))
            content.append(line("reach", at, y.at(logit(on_ood.low)), at, y.at(logit(on_ood.high))))
        said = f"{name}: ID {shown(one.id.value, SHARE)}, OOD {shown(one.ood.value, SHARE)}"
        content.append(marker(0, at, to, said))
        beyond = ""
        if fitted is not None:
            beyond = f"{100 * (on_ood.value - expit(fitted.intercept + fitted.slope * logit(on_id.value))):+z.1f}"
        rows.append((name, shown(one.id.value, SHARE), shown(one.ood.value, SHARE), beyond.replace("-", "−")))
    if len(scores) <= 3:
        content += [
            label(x.at(logit(inside(one.id).value)), y.at(logit(inside(one.ood).value)) - 9, name)
            for name, one in zip(names, scores, strict=True)
            if len(name) <= 24 and LEFT + 60 < x.at(logit(inside(one.id).value)) < SIDE - 60
        ]
    caption = "Each point is an entry" + ("" if many else ", its bars 95 % intervals") + "; dashed: OOD as good as ID."
    if fitted is not None:
        caption += " Solid: the line through the entries; above it OOD is better than ID lets expect."
    return Figure(
        drawn(content, "OOD score against ID score", SIDE, SIDE),
        "ID against OOD",
        caption,
        ("entry", "ID (%)", "OOD (%)", "above the line (points)"),
        tuple(rows),
    )


def _fitted(scores: Sequence[Score]) -> Line | None:
    points = [Point(one.id.value, one.ood.value, one.id.rows, one.ood.rows) for one in scores]
    return fit_line(points) if len({point.id for point in points}) >= FEWEST else None
