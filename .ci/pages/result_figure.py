"""Dot plots with intervals as SVG: a panel a benchmark, a row a model. The same scores give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from farshift.baselines.running.recorded_scores import RecordedScore
from farshift.baselines.running.results import get_recipe_name

ROW, GAP, TOP, MARGIN = 13, 22, 34, 130
"""Height of a row, and the space between panels, above the rows and left of them, in pixels."""
GREEN, BLUE, VERMILION = "#009E73", "#0072B2", "#D55E00"
"""Of Okabe and Ito (Color Universal Design, 2008): fine-tuned, on frozen features, and from scratch."""


def draw_panels(panels: Mapping[str, Mapping[str, RecordedScore]], rows: Sequence[str], across: int = 150) -> str:
    """Draw the OOD score of each model with its interval, a dot, and its ID score, a ring, in percent.

    panels: the scores by model, by benchmark, all of metrics in [0, 1]; rows: models, from top to bottom; across: the
    width of a panel in pixels."""
    foot, width = TOP + ROW * len(rows), MARGIN + len(panels) * (across + GAP)
    size = f'viewBox="0 0 {width} {foot + 20}" width="{width}" height="{foot + 20}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="10">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, name in enumerate(rows):
        label, y = escape(get_recipe_name(name) + ", fine-tuned" * _is_tuned(name)), TOP + ROW * number + 7
        parts.append(f'<text x="{MARGIN - 12}" y="{y}" text-anchor="end">{label}</text>')
    for number, (benchmark, scores) in enumerate(panels.items()):
        parts.append(f'<g transform="translate({MARGIN + number * (across + GAP)} 0)">')
        parts.append(f'<text y="14" font-weight="bold">{escape(benchmark)}</text>')
        for value in range(0, 101, 20):
            x = value * across / 100
            parts.append(f'<path d="M{x} {TOP - 6}V{foot}" stroke="#ddd"/>')
            parts.append(f'<text x="{x}" y="{foot + 12}" text-anchor="middle" fill="#595959">{value}</text>')
        parts += [
            _draw_row(scores[name], TOP + ROW * row + 4, across) for row, name in enumerate(rows) if name in scores
        ]
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _is_tuned(model: str) -> bool:
    return model.endswith(", fine-tuned)")


def _draw_row(score: RecordedScore, y: int, across: int) -> str:
    pretrained = get_recipe_name(score.model) != score.model
    colour = GREEN if _is_tuned(score.model) else BLUE if pretrained else VERMILION
    shares = (score.ood.low, score.ood.high, score.ood.value, score.id.value)
    low, high, ood, id_ = (f"{share * across:.1f}" for share in shares)
    return (
        f'<path d="M{low} {y}H{high}" stroke="{colour}"/><circle cx="{ood}" cy="{y}" r="3" fill="{colour}"/>'
        f'<circle cx="{id_}" cy="{y}" r="2.5" fill="white" stroke="{colour}"/>'
    )
