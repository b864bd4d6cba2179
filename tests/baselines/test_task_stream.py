"""A stream of tasks: which rows are rehearsed, what is evaluated, and the measures of it against plain loops."""

import math

import pytest
import torch
from farshift.baselines.diagnostics import NotApplicable
from farshift.baselines.diagnostics._subject import Subject
from farshift.baselines.diagnostics.continual_evaluation import measure, summarise_stream

from .small_stacks import begun, clock_of, finished, steps_of, wide_rows

ENDS = (3, 7, 11)


def test_past_tasks_come_back_by_a_power_of_their_age() -> None:
    settings = ({"exponent": 1.0, "rehearsed": 0.5}, {"exponent": 0.0, "rehearsed": 0.6}, {"rehearsed": 0.0})
    algorithm = begun("task_stream", *settings, data=wide_rows()).stack.algorithm
    shares = algorithm.compute_task_shares(2)
    for own, expected in zip(shares.tolist(), ([1 / 6, 1 / 3, 1 / 2], [0.3, 0.3, 0.4], [0, 0, 1]), strict=True):
        assert own == pytest.approx(expected)
    assert algorithm.compute_task_shares(0).tolist() == [[1, 0, 0]] * 3


def test_rows_of_a_batch_are_of_the_task_and_of_the_kept_rows_of_earlier_ones() -> None:
    data = wide_rows()
    training = begun("task_stream", {}, {"rehearsed": 0.9}, data=data, common={"batch_size": 40, "memory": 2}, steps=12)
    algorithm, seen = training.stack.algorithm, [set[int]() for _ in range(2)]
    for step in steps_of(training):
        task = sum(step > end for end in ENDS)
        ((batch, _),) = training.sampler.batches(step)
        chosen = algorithm.choose_rows(batch, clock_of(training)).rows
        groups = data.group[chosen]
        assert int(groups.max()) == task
        for replica in range(2):
            seen[replica] |= set(chosen[replica][groups[replica] == 0].tolist()) if task else set()
    assert [len(rows) for rows in seen] == [2, 2]
    assert seen[0] != seen[1]


def test_a_task_has_its_share_of_the_rows() -> None:
    data = wide_rows(600)
    training = begun("task_stream", {"rehearsed": 0.5}, data=data, common={"batch_size": 6000}, steps=12)
    for _ in range(8):
        training.step()
    ((batch, _),) = training.sampler.batches(8)
    chosen = training.stack.algorithm.choose_rows(batch, clock_of(training)).rows
    counts = torch.bincount(data.group[chosen[0]]) / chosen.numel()
    assert counts.tolist() == pytest.approx([1 / 6, 1 / 3, 1 / 2], abs=0.03)


def test_the_curve_is_the_accuracy_of_each_task_after_each_step() -> None:
    data = wide_rows()
    training = begun("task_stream", {}, {}, data=data, common={"evaluate_every": 5, "batch_size": 4}, steps=12)
    expected = {}
    held_out = data.held_out["id_val"]
    for step in steps_of(training):
        if step:
            right = training.stack.answer(*held_out.inputs).argmax(-1) == held_out.target
            expected[step - 1] = [
                [float(own[held_out.group == task].double().mean()) for task in range(3)] for own in right
            ]
    curve = finished(training).algorithm.curve
    for step in range(11):
        if step in (3, 4, 7, 9):
            torch.testing.assert_close(curve[:, step], torch.tensor(expected[step], dtype=curve.dtype))
        else:
            assert bool(curve[:, step].isnan().all())


def test_measures_are_those_of_a_plain_loop() -> None:
    curve = torch.rand(2, 12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    curve[:, [1, 6]] = math.nan
    measured = summarise_stream(curve, ENDS)
    for replica, a in enumerate(curve.tolist()):
        lowest = [min(a[n][i] for n in range(ENDS[i] + 1, 12) if not math.isnan(a[n][i])) for i in range(2)]
        gaps = []
        for old, new in ((0, 1), (0, 2), (1, 2)):
            steps = [a[n][old] for n in range(ENDS[new - 1], ENDS[new] + 1) if not math.isnan(a[n][old])]
            gaps.append(min(steps[0], steps[-1]) - min(steps))
        expected = {
            "accuracy": sum(a[11]) / 3,
            "forgetting": sum(a[ENDS[i]][i] - a[11][i] for i in range(2)) / 2,
            "min_accuracy": sum(lowest) / 2,
            "worst_case_accuracy": a[11][2] / 3 + (2 / 3) * sum(lowest) / 2,
            "stability_gap": sum(gaps) / 3,
        }
        assert {name: float(values[replica]) for name, values in measured.items()} == pytest.approx(expected)


def test_a_fall_that_is_made_up_for_is_seen_only_between_the_ends_of_tasks() -> None:
    curve = torch.full((1, 12, 3), 0.9, dtype=torch.float64)
    curve[0, 5, 0] = 0.3
    seen = summarise_stream(curve, ENDS)
    assert float(seen["stability_gap"]) == pytest.approx(0.6 / 3)
    assert float(seen["min_accuracy"]) == pytest.approx(0.6)
    curve[:, [n for n in range(12) if n not in ENDS]] = math.nan
    hidden = summarise_stream(curve, ENDS)
    assert float(hidden["stability_gap"]) == 0
    assert float(seen["forgetting"]) == float(hidden["forgetting"]) == 0


def test_other_algorithms_have_no_stream() -> None:
    data = wide_rows()
    with pytest.raises(NotApplicable, match="use the algorithm task_stream"):
        measure(Subject(finished(begun("erm", {}, data=data)), data, "classification"))
