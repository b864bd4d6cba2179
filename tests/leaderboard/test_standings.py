"""Tables say what the data can carry: rank sets, ties, baselines, attempts; and nothing of what they cannot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from farshift.benchmarks.statistics.sample import Replicates, RowScores
from farshift.leaderboard.publish.site import Site
from farshift.leaderboard.tables.entry_rows import EntryRows
from farshift.leaderboard.tables.table import group_entries, make_table
from made_tables import entry, snapshot
from scipy import stats


def only(found):
    (item,) = found.views
    return item


def test_entries_far_apart_have_one_rank_each_and_no_letter_in_common():
    result = only(snapshot([entry("weak", 0.2), entry("strong", 0.8), entry("middling", 0.5)]))
    assert [row.standing.score.model for row in result.rows] == ["strong", "middling", "weak"]
    assert [row.rank for row in result.rows] == [(1, 1), (2, 2), (3, 3)]
    assert [row.ties for row in result.rows] == ["a", "b", "c"]
    assert [row.best for row in result.rows] == [1.0, 0.0, 0.0]
    assert result.rows[0].behind is None
    assert result.rows[1].behind["high"] < 0
    assert result.rows[1].behind["told_apart"]


def test_entries_that_cannot_be_told_apart_share_ranks_and_a_letter():
    result = only(snapshot([entry("one", 0.50), entry("other", 0.505), entry("far", 0.1)]))
    assert [row.rank for row in result.rows] == [(1, 2), (1, 2), (3, 3)]
    assert [row.ties for row in result.rows] == ["a", "a", "b"]
    assert sum(row.best for row in result.rows) == pytest.approx(1, abs=1e-3)


def test_where_lower_is_better_the_lowest_is_first():
    built = [entry("low", 0.2, better="lower"), entry("high", 0.7, better="lower")]
    result = only(snapshot(built, baseline="high"))
    assert [row.standing.score.model for row in result.rows] == ["low", "high"]
    assert [row.rank for row in result.rows] == [(1, 1), (2, 2)]
    assert result.rows[0].against["verdict"] == "better"


def test_a_table_does_not_depend_on_the_order_in_which_entries_came():
    built = [entry(f"m{k}", 0.3 + 0.02 * k) for k in range(8)]
    result = only(snapshot(built)).record()
    for other in (built[::-1], built[3:] + built[:3], built[1::2] + built[::2]):
        assert only(snapshot(other)).record() == result


def test_who_else_enters_moves_nobody_s_score_and_no_p_of_a_pair_downwards():
    built = [entry("base", 0.4), entry("better", 0.55)]
    few = only(snapshot(built, baseline="base"))
    many = only(snapshot([*built, *(entry(f"m{k}", 0.2 + 0.05 * k) for k in range(6))], baseline="base"))
    there = {row.standing.score.model: row for row in many.rows}
    assert there["better"].against["p"] == pytest.approx(few.rows[0].against["p"], rel=1e-4)
    assert there["better"].against["p_holm"] >= few.rows[0].against["p_holm"]
    assert there["better"].record()["ood"] == few.rows[0].record()["ood"]


def test_the_p_against_a_baseline_is_that_of_a_paired_t_test():
    """With one seed on either side and no clusters: SciPy's paired test, but for the guard row at either end."""
    built = [entry("base", 0.45, seeds=1), entry("other", 0.5, seeds=1)]
    result = only(snapshot(built, baseline="base"))
    own = next(row for row in result.rows if row.standing.score.model == "other")
    left, right = (pair[1].ood.scores[0] for pair in reversed(built))
    assert own.against["p"] == pytest.approx(stats.ttest_rel(left, right).pvalue, rel=0.1)
    assert own.against["value"] == pytest.approx(float((left - right).mean()), abs=1e-6)


def test_the_p_against_a_baseline_is_below_a_twentieth_exactly_where_its_interval_excludes_zero():
    """Over a fine grid of differences, and three seeds: what rows and seeds both have in them counts once in both."""
    built = [entry("base", 0.5), *(entry(f"m{k}", 0.5 + 0.002 * k) for k in range(1, 31))]
    result = [row.against for row in only(snapshot(built, baseline="base")).rows if row.against]
    apart = [item["low"] > 0 or item["high"] < 0 for item in result]
    assert apart == [item["p"] < 0.05 for item in result]
    assert 0 < sum(apart) < len(apart)


def test_the_baseline_itself_and_a_table_without_it_have_no_verdict():
    built = [entry("base", 0.4), entry("other", 0.6)]
    result = only(snapshot(built, baseline="base"))
    assert {row.standing.score.model: row.against is None for row in result.rows} == {"base": True, "other": False}
    none = only(snapshot(built, baseline="absent"))
    assert none.baseline == ""
    assert all(row.against is None for row in none.rows)


def test_attempts_of_a_team_are_counted_and_its_best_entry_shows_the_optimism():
    built = [
        entry("first try", 0.5),
        entry("second try", 0.51),
        entry("theirs", 0.4, team="them"),
        entry("?", 0.3, team=""),
    ]
    identity = built[0][0].score.entry_identity
    result = only(snapshot(built, {("us", identity): 7, ("them", identity): 1}))
    by_model = {row.standing.score.model: row for row in result.rows}
    assert [by_model[name].attempts for name in ("first try", "second try", "theirs", "?")] == [7, 7, 1, None]
    assert [name for name, row in by_model.items() if row.optimism is not None] == ["second try"]
    assert by_model["second try"].optimism > only(snapshot(built, {("us", identity): 2})).rows[0].optimism > 0
    assert any("Attempts:" in note for note in result.notes)


def test_a_metric_that_is_no_mean_of_rows_is_ranked_by_its_jackknife():
    built = []
    for model, value in (("low", 0.2), ("high", 0.9), ("alike", 0.205)):
        standing, _ = entry(model, value)
        noise = np.random.default_rng(len(model)).normal(0, 0.002, (3, 50))
        values = Replicates([value] * 3, value + noise - noise.mean(), np.full(50, 20), (0.0, 1.0))
        built.append((standing, EntryRows(values, values)))
    result = only(snapshot(built))
    assert (result.rows[0].standing.score.model, result.rows[0].rank) == ("high", (1, 1))
    assert {row.rank for row in result.rows[1:]} == {(2, 3)}


def test_an_entry_whose_score_has_no_variance_has_no_rank_and_the_table_says_why():
    built = [entry("fine", 0.5), entry("also fine", 0.6)]
    standing, _ = entry("undefined", 0.4)
    broken = Replicates([0.4] * 3, np.full((3, 1), np.nan), np.array([600]), (0.0, 1.0))
    (table,) = group_entries([item for item, _ in built] + [standing])
    by_name = {item.entry: result for item, result in built} | {standing.entry: EntryRows(broken, broken)}
    result = make_table(table, by_name, {}, {})
    ranks = {row.standing.score.model: row.rank for row in result.rows}
    assert ranks["undefined"] is None
    assert result.ranked == 2
    assert any("No rank set for undefined: the variance of its score is unknown" in note for note in result.notes)


def test_entries_without_rows_here_have_no_rank_and_the_table_says_why():
    (item, result), (other, _) = entry("here", 0.5), entry("elsewhere", 0.6)
    (table,) = group_entries([item, other])
    shown = make_table(table, {item.entry: result}, {other.entry: "of an older identity"}, {})
    assert {row.standing.score.model: row.rank for row in shown.rows} == {"here": (1, 1), "elsewhere": None}
    assert any("No rank set for elsewhere: of an older identity" in note for note in shown.notes)


def test_a_single_seed_is_said_to_lack_the_noise_of_training():
    result = only(snapshot([entry("once", 0.5, seeds=1), entry("thrice", 0.6)]))
    assert any("1 of the entries have a single seed" in note for note in result.notes)
    assert result.detectable.single == 1


def test_rows_in_clusters_give_wider_rank_sets():
    """The same scores, but in eight clusters that err together: what looked apart no longer is."""
    clusters = np.repeat(np.arange(8), 75)
    lift = np.random.default_rng(5).normal(0, 0.35, 8)[clusters]

    def standing(model: str, shift: float, use: bool):
        item, _ = entry(model, 0.5)
        sign = 1 if model == "one" else -1
        scores = np.clip(0.5 + shift + sign * lift + np.random.default_rng(1).normal(0, 0.02, (3, 600)), 0, 1)
        result = RowScores(scores, (0.0, 1.0), clusters if use else None)
        return replace(
            item, score=replace(item.score, ood=replace(item.score.ood, value=float(scores.mean())))
        ), EntryRows(result, result)

    free = only(snapshot([standing("one", 0.06, False), standing("other", -0.06, False)]))
    locked = only(snapshot([standing("one", 0.06, True), standing("other", -0.06, True)]))
    assert {row.rank for row in free.rows} == {(1, 1), (2, 2)}
    assert {row.rank for row in locked.rows} == {(1, 2)}


def test_the_aggregate_lists_models_apart_that_lack_a_benchmark():
    shares = {"modadd97/xi35": 0.5, "vowel/speakers": 0.6}
    built = [entry(model, share, on, kind="domain") for model in ("a", "b") for on, share in shares.items()]
    built.append(entry("partial", 0.9, "vowel/speakers", kind="domain"))
    (suite,) = snapshot(built).suites
    assert sorted(row.entry for row in suite.aggregates.rows) == ["a (us)", "b (us)"]
    assert [(row.entry, row.missing) for row in suite.aggregates.incomplete] == [("partial (us)", ("modadd97/xi35",))]
    assert "more than 6 needed" in suite.concurrences[0].to_dict()["n/a"]


def test_the_later_of_two_entries_of_one_model_counts_in_the_aggregate_not_the_better():
    built = []
    for on in ("modadd97/xi35", "vowel/speakers"):
        built += [entry("m", 0.9, on, kind="domain", made=1), entry("m", 0.3, on, kind="domain", made=2)]
    result = [(replace(item, entry=f"{k:016x}"), stored) for k, (item, stored) in enumerate(built)]
    (suite,) = snapshot(result).suites
    (row,) = suite.aggregates.rows
    assert all(value < 0.4 for value in row.by_benchmark.values())


def test_an_entry_that_has_not_learnt_the_task_is_marked_with_the_reason_and_stays_ranked():
    built = [entry("strong", 0.7), entry("weak", 0.1), entry("half way", 0.4)]
    built = [(standing, replace(result, floor=0.05)) for standing, result in built]
    view = only(snapshot(built))
    marked = {row.standing.score.model: row.not_learnt for row in view.rows}
    best = max(row.standing.score.id.value for row in view.rows)
    assert (marked["strong"], marked["half way"]) == ("", "")
    assert f"less than half way from a constant prediction (0.05) to the best score ({best:.3g})" in marked["weak"]
    assert all(row.rank for row in view.rows)
    assert any(note.startswith("low ID score: ") for note in view.notes)
    site = Site(snapshot(built))
    assert site.pages["index.html"].render().decode().count("<small>low ID score</small>") == 1
    assert site.pages["benchmarks/scan/length.html"].render().decode().count(">low ID score</span>") == 1
    (weak,) = (standing.entry for standing, _ in built if standing.score.model == "weak")
    assert "is therefore not a measure of robustness" in site.pages[f"entries/{weak}.html"].render().decode()
    without = only(snapshot([entry("strong", 0.7), entry("weak", 0.1)]))
    assert not any(row.not_learnt for row in without.rows), "nothing is held to a floor that is not known"
