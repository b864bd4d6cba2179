"""Figures of scores with intervals as SVG, whose bytes follow from the scores: dot plots, and OOD against ID."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log

from farshift.baselines.running.recorded_scores import RecordedScore
from farshift.baselines.running.results import get_recipe_name
from farshift.benchmarks.derived.robustness import Line

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


def draw_robustness(heads: Mapping[str, Mapping[int, RecordedScore]], line: Line) -> str:
    """Draw OOD against ID scores on logit axes, with the line from which effective robustness is measured (Taori et
    al., 2020).

    heads: the scores by the layers of the network, which are the size of the dot, by what has one colour."""

    known = [score for scores in heads.values() for score in scores.values()]
    left, right = _enclose(*(end for score in known for end in (score.id.low, score.id.high)))
    bottom, top = _enclose(*(end for score in known for end in (score.ood.low, score.ood.high)))

    def to_x(share: float) -> float:
        return 50 + 520 * (_logit(share) - _logit(left / 100)) / (_logit(right / 100) - _logit(left / 100))

    def to_y(share: float) -> float:
        return 326 - 302 * (_logit(share) - _logit(bottom / 100)) / (_logit(top / 100) - _logit(bottom / 100))

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 590 360" width="590" height="360" '
        'font-family="sans-serif" font-size="10">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="50" y="356">ID accuracy (%)</text><text x="50" y="14">OOD accuracy (%)</text>',
    ]
    for value in range(left, right + 1):
        x = to_x(value / 100)
        parts.append(f'<path d="M{x:.1f} 24V326" stroke="#eee"/>')
        parts.append(f'<text x="{x:.1f}" y="340" text-anchor="middle" fill="#595959">{value}</text>')
    for value in range(-(-bottom // 5) * 5, top + 1, 5):
        y = to_y(value / 100)
        parts.append(f'<path d="M50 {y:.1f}H570" stroke="#ddd"/>')
        parts.append(f'<text x="44" y="{y + 3:.1f}" text-anchor="end" fill="#595959">{value}</text>')
    ends = [(share / 100, line.ood(_logit(share / 100))) for share in (left + 1, right - 1)]
    path = "L".join(f"{to_x(low):.1f} {to_y(high):.1f}" for low, high in ends)
    parts.append(f'<path d="M{path}" stroke="#595959" stroke-dasharray="4 3"/>')
    for number, ((name, scores), colour) in enumerate(zip(heads.items(), (BLUE, VERMILION, GREEN), strict=True)):
        parts.append(f'<circle cx="{200 + 130 * number}" cy="10" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{208 + 130 * number}" y="14">{escape(name)}</text>')
        for layers, score in scores.items():
            x, y = to_x(score.id.value), to_y(score.ood.value)
            across = f"M{to_x(score.id.low):.1f} {y:.1f}H{to_x(score.id.high):.1f}"
            along = f"M{x:.1f} {to_y(score.ood.low):.1f}V{to_y(score.ood.high):.1f}"
            parts.append(f'<path d="{across}{along}" stroke="{colour}" stroke-opacity="0.4"/>')
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{1 + layers / 11:.1f}" fill="{colour}"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _enclose(*shares: float) -> tuple[int, int]:
    """The ends of an axis, in percent: whole numbers around all of some shares."""
    return floor(100 * min(shares)), ceil(100 * max(shares))


def _logit(share: float) -> float:
    return log(share / (1 - share))


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
