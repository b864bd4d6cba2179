"""docs/results.md and its figures: the text of results_template.md with numbers of the recorded results.

In the template {BENCHMARK|MODEL|VIEW} is a score with its interval (id, ood or gap), after `full:` one under that
budget, {mean|RECIPE|RULE} a mean over PACS' domains, and {first|BENCHMARK} how many can be first. A comment `holds: A <
B` states that the interval of A is below that of B, `holds: first|BENCHMARK|MODEL` that the model can be first,
`behind|..` that it cannot: if one is no longer true, no page is generated. A plus sign stands for `ENCODED`, # for
`TUNED`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import fmean

from farshift.baselines.running.recorded_scores import CONSTANT, RecordedScore, results
from farshift.baselines.running.results import get_recipe_name
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.derived.robustness import Point, fit_line
from farshift.benchmarks.listing import benchmarks
from farshift.benchmarks.statistics.interval import Interval
from farshift.splits.manifest import KINDS
from markdown_text import format_table
from rank_sets import (
    ENCODED,
    PACS,
    RULES,
    SEARCHED,
    list_ranked,
    read_corruption_errors,
    read_means,
    read_memorised,
    read_ranks,
)
from result_figure import draw_panels, draw_robustness

Scores = Mapping[str, Mapping[str, RecordedScore]]

BY_KIND = """# Results by kind of shift

The best recorded result on each benchmark ([how they were recorded](results.md)): those with pretrained networks first,
then other collected data, then generated data. *Can be first*: how many results have rank 1 in their rank set, of those
ranked; blank if no rank sets were computed. *Constant*: OOD, always the most frequent answer. *Learnt*: how many
results learnt their training distribution.
"""
TEMPLATE = Path(__file__).with_name("results_template.md")
LABELS = Path(__file__).with_name("results_labels_template.md")
TUNED = " (efficientnet-lite0, fine-tuned)"
PUBLISHED = {"erm": 85.5, "irm": 83.5, "group-dro": 84.4, "domain-mixup": 84.6, "mldg": 84.9, "coral": 86.2}
PUBLISHED |= {"mmd": 84.6, "dann": 83.6, "cdann": 82.6, "sagnet": 86.3, "vrex": 84.9, "rsc": 85.2}
"""DomainBed's mean over the domains: domainbed/results/2020_10_06_7df6f06/results.tex, training-domain validation."""
PACS_ROWS = (
    "erm" + TUNED,
    "coral" + TUNED,
    *(name + ENCODED for name in (*PUBLISHED, "logistic-regression", "linear")),
    "cnn",
    "resnet",
)
TREES = ("boosted-trees", "xgboost", "lightgbm", "catboost", "random-forest")
TABLES = (*TREES, "mlp", "logistic-regression", "group-dro", "coral", CONSTANT)
SENTENCES = " (all-minilm-l6-v2)"
NOISE = tuple(f"cifar10_pictures/human_{given}" for given in ("worst", "random1", "aggregate"))
CIFAR = "cifar10_pictures_corrupted/common"
DEPTHS = {20: 91.73, 32: 92.63, 44: 93.1, 56: 93.39}
"""The published accuracy on CIFAR-10's own test pictures, by the layers of a network (`loaders/weights/`)."""
PICTURES = (*(name + ENCODED for name in ("erm", "logistic-regression", "linear", "sam", "mixup", "swad")), "cnn")
TEXTS = (*(name + SENTENCES for name in ("logistic-regression", "linear", "erm", "boosted-trees", "knn")), "mlp")


def build_result_pages() -> dict[str, str]:
    """The pages and their figures, by path in docs/."""
    scores: dict[str, dict[str, RecordedScore]] = {}
    for score in results():
        scores.setdefault(score.benchmark, {})[score.model] = score
    tables = {
        "pacs": _render_pacs(scores),
        "longer": _render_longer(scores),
        "searched": _render_searched(),
        "tables": _render_tables(TABLES, scores, ("tabular", "array")),
        "texts": _render_tables(TEXTS, scores, ("text",)),
        "pictures": _render_tables(PICTURES, scores, ("image",), apart=PACS),
        "cifar": _render_cifar(scores),
    } | {name.rpartition("/")[2]: _render_noise(name, scores) for name in NOISE}
    text = fill_template(TEMPLATE.read_text("utf-8"), scores, tables)
    noise = draw_panels({name: scores[name] for name in NOISE}, _list_noise_models(scores), across=200)
    kinds = "\n\n".join(f"## {kind.capitalize()}\n\n{_render_kind(kind, scores)}" for kind in KINDS)
    return {
        "results.md": text,
        "results-labels.md": fill_template(LABELS.read_text("utf-8"), scores, tables),
        "results-by-kind.md": f"{BY_KIND}\n{kinds}\n",
        "figures/pacs.svg": _draw_pacs(scores),
        "figures/human_noise.svg": noise,
        "figures/robustness.svg": _draw_robustness(scores[CIFAR]),
    }


def fill_template(template: str, scores: Scores, tables: Mapping[str, str]) -> str:
    """The template with its numbers and tables; `ValueError` if something that it states does not hold."""
    for condition in re.findall(r"<!-- holds: (.+) -->\n", template):
        if not _holds(condition, scores):
            raise ValueError(f"{TEMPLATE.name}: the recorded results do not support {condition!r}")
    text = re.sub(r"<!-- holds: .+ -->\n", "", template)
    text = re.sub(r"\{(\w+)\}", lambda match: tables[match[1]], text)
    text = re.sub(r"\{first\|([^}]+)\}", lambda match: _count_first(match[1]), text)
    return re.sub(r"\{([^}|]+\|[^}]+)\}", lambda match: _format_estimate(_find_estimate(match[1], scores)), text)


def _holds(condition: str, scores: Scores) -> bool:
    if condition.startswith(("first|", "behind|")):
        place, benchmark, model = _expand(condition).split("|")
        return (read_ranks(benchmark)[model][0] == 1) == (place == "first")
    left, right = condition.split(" < ")
    low = _find_estimate(right, scores).low if "|" in right else float(right)
    return (_find_estimate(left, scores).high if "|" in left else float(left)) < low


def _find_estimate(name: str, scores: Scores) -> Interval:
    benchmark, model, view = _expand(name).split("|")
    if benchmark == "mean":
        return Interval(*read_means()[view][model])
    if benchmark.startswith("full:"):
        longer: Interval = getattr(_read_longer(benchmark.removeprefix("full:"))[model], view)
        return longer
    if model not in scores.get(benchmark, {}):
        address = f"baseline:{model}@{benchmark}"
        raise ValueError(f"no score by this scorer is stored: farshift baselines record '{address}'")
    estimate: Interval = getattr(scores[benchmark][model], view)
    return estimate


@cache
def _read_longer(benchmark: str) -> dict[str, RecordedScore]:
    """The results under the budget `full`, by model."""
    return {score.model: score for score in results(on=benchmark, budget="full")}


def _expand(name: str) -> str:
    return name.replace("+", ENCODED).replace("#", TUNED)


def _draw_pacs(scores: Scores) -> str:
    """The models that are recorded on three domains or more, by their mean over the domains that all of them have."""
    models = {model for name in PACS for model in scores[name] if not model.endswith(SEARCHED)} - {CONSTANT}
    models = {model for model in models if sum(model in scores[name] for name in PACS) >= 3}
    shared = [name for name in PACS if models <= set(scores[name])]
    order = sorted(models, key=lambda model: (-fmean(scores[name][model].ood.value for name in shared), model))
    return draw_panels({name: scores[name] for name in PACS}, order)


def _draw_robustness(known: Mapping[str, RecordedScore]) -> str:
    """Each head on each network, and the line through the nearest-neighbour heads."""
    names = {
        head: {depth: f"{head} (cifar10-resnet{depth})" for depth in DEPTHS}
        for head in ("logistic-regression", "linear", "knn")
    }
    heads = {
        head: {depth: known[name] for depth, name in by_depth.items() if name in known}
        for head, by_depth in names.items()
    }
    line = fit_line(
        [Point(each.id.value, each.ood.value, each.id.rows, each.ood.rows) for each in heads["knn"].values()]
    )
    return draw_robustness(heads, line)


def _render_pacs(scores: Scores) -> str:
    rows = [
        (f"`{model}`", *(_format_ranked(name, model, scores) for name in PACS), str(PUBLISHED.get(recipe, "")))
        for model, recipe in ((model, get_recipe_name(model)) for model in PACS_ROWS)
    ]
    return format_table(("baseline", *(f"`{name}`{_format_field(name)}" for name in PACS), "DomainBed"), rows)


def _render_longer(scores: Scores) -> str:
    """The same baselines under the budget `full`: OOD under `quick`, then under `full` with its interval."""
    longer = {name: _read_longer(name) for name in PACS}
    models = [model for model in PACS_ROWS if all(model in longer[name] for name in PACS)]
    rows = [
        (f"`{model}`", *(_format_change(scores[name][model].ood, longer[name][model].ood) for name in PACS))
        for model in models
    ]
    return format_table(("baseline", *(f"`{name}`" for name in PACS)), rows)


def _render_searched() -> str:
    """Means over the domains: with default settings, then chosen from eight by each of DomainBed's rules."""
    means = read_means()
    order = sorted(means.get(RULES[0], {}), key=lambda recipe: -means[RULES[0]][recipe][0])
    rows = [
        (f"`{recipe}`", *(_format_shares(*means[rule][recipe]) for rule in ("default", *RULES)), str(PUBLISHED[recipe]))
        for recipe in order
    ]
    return format_table(("baseline", "default", *(f"`{rule}`" for rule in RULES), "DomainBed"), rows)


def _format_change(before: Interval, after: Interval) -> str:
    return f"{100 * before.value:z.1f} → {_format_estimate(after)}"


def _list_noise_models(scores: Scores) -> list[str]:
    """The baselines on labels that people got wrong, the best on most wrong labels first."""
    known = dict.fromkeys(name for benchmark in NOISE for name in scores[benchmark])
    return [name for name in known if name != CONSTANT]


def _render_noise(benchmark: str, scores: Scores) -> str:
    """Every baseline: true, restored and memorised labels, the best first."""
    memorised = read_memorised(benchmark)
    rows = [
        (
            f"`{model}`",
            _format_estimate(score.id),
            _format_ranked(benchmark, model, scores),
            _format_shares(*memorised[model]) if model in memorised else "",
        )
        for model, score in scores[benchmark].items()
        if model != CONSTANT
    ]
    return format_table(("baseline", "true", "restored", "memorised"), rows)


def _render_cifar(scores: Scores) -> str:
    """Each network, with a logistic regression as its head: what is published, ID, OOD, the gap and the mCE."""
    known = {depth: scores[CIFAR][f"logistic-regression (cifar10-resnet{depth})"] for depth in DEPTHS}
    errors = read_corruption_errors(CIFAR)
    rows = [
        (
            f"`cifar10-resnet{depth}`",
            f"{DEPTHS[depth]:.1f}",
            *map(_format_estimate, (score.id, score.ood, score.gap)),
            _format_shares(*errors[score.model]) if score.model in errors else "",
        )
        for depth, score in known.items()
    ]
    return format_table(("network", "published", "ID", "OOD", "gap", "mCE"), rows)


list_benchmarks = cache(benchmarks)  # a page asks for it at every table


def _render_tables(
    models: tuple[str, ...], scores: Scores, modalities: tuple[str, ...], apart: tuple[str, ...] = ()
) -> str:
    """The collected data of these modalities on which the first model is recorded, but those that stand `apart`."""
    names = [entry.name for entry in list_benchmarks() if entry.modality in modalities and not entry.generated]
    rows = [
        (_format_benchmark(name) + _format_field(name), *(_format_ranked(name, model, scores) for model in models))
        for name in names
        if models[0] in scores.get(name, ()) and name not in apart
    ]
    return format_table(("benchmark", *(f"`{name}`" for name in models)), rows)


def _render_kind(kind: str, scores: Scores) -> str:
    entries = [entry for entry in list_benchmarks() if entry.kind == kind and entry.name in scores]
    pretrained = {name for name, known in scores.items() if any(get_recipe_name(model) != model for model in known)}
    entries.sort(key=lambda entry: (entry.name not in pretrained, entry.generated, entry.name))
    head = ("benchmark", "best", "ID", "OOD", "can be first", "constant", "learnt")
    return format_table(head, [_format_best(entry.name, scores[entry.name]) for entry in entries])


def _format_best(benchmark: str, known: Mapping[str, RecordedScore]) -> tuple[str, ...]:
    learnt = [score for model, score in known.items() if model in list_ranked(benchmark)]
    best = ("", "", "")
    if learnt:
        views = (_format_estimate(getattr(learnt[0], view), learnt[0].in_percent) for view in ("id", "ood"))
        best = (f"`{learnt[0].model}`", *views)
    constant = known.get(CONSTANT)
    answer = _format_estimate(constant.ood, constant.in_percent).partition(" ")[0] if constant else ""
    return _format_benchmark(benchmark), *best, _count_first(benchmark), answer, str(len(learnt))


def _count_first(benchmark: str) -> str:
    ranks = read_ranks(benchmark)
    return f"{sum(low == 1 for low, _ in ranks.values())} of {len(ranks)}" if ranks else ""


def _format_benchmark(name: str) -> str:
    metric = find_benchmark(name).metrics[0]
    return f"`{name}`, {metric.name.replace('_', ' ')}{' (lower is better)' if metric.better == 'lower' else ''}"


def _format_ranked(benchmark: str, model: str, scores: Scores) -> str:
    if model not in scores.get(benchmark, {}):
        return ""
    rank = read_ranks(benchmark).get(model)
    plain = model == CONSTANT or model in list_ranked(benchmark)
    mark = f", *{rank[0]}–{rank[1]}*" if rank else "" if plain else " †"
    return _format_estimate(scores[benchmark][model].ood) + mark


def _format_field(benchmark: str) -> str:
    """How many results were ranked on a benchmark."""
    return f", of {len(ranks)}" if (ranks := read_ranks(benchmark)) else ""


def _format_estimate(estimate: Interval, percent: bool = True) -> str:
    return _format_shares(estimate.value, estimate.low, estimate.high, percent=percent)


def _format_shares(*ends: float, percent: bool = True) -> str:
    value, low, high = (f"{100 * number:z.1f}" if percent else f"{number:z.3f}" for number in ends)
    return f"{value} [{low}, {high}]"
