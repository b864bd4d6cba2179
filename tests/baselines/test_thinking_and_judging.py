"""Easy-to-hard and compositional methods: networks that think longer, weak teachers, judges of candidates."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.re_ranking import sample_answers, search_beams
from farshift.baselines.encoding.decoding import decode_greedily
from farshift.baselines.encoding.encoding import BOS, EOS, PAD, Sizes
from farshift.baselines.networks.deep_thinking import Convolution, Network
from farshift.baselines.replicas.rng import make_keys
from farshift.baselines.replicas.stacked import stack_networks
from farshift.baselines.training.checkpoint import resume_training, save_checkpoint
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.core.plugins import load_module
from torch import Tensor

from .small_sequences import TINY, alone, check_alike, settings, training
from .small_stacks import batch_of, clock_of
from .toys import TURN, accuracy, commands, recipe, trained

SIZES = Sizes(6, source=6, aligned=True)
SOURCE = torch.tensor([[4, 5, 5, 4, 5], [5, 4, PAD, PAD, PAD]])


def thinker(seeds: Sequence[int] = (0,), **own: Any) -> Any:
    built = []
    for seed in seeds:
        torch.manual_seed(seed)
        built.append(Network(SIZES, TINY["deep_thinking"] | {"iterations_per_token": 2} | own).double())
    return stack_networks(built)


def test_a_convolution_is_that_of_torch_at_every_token() -> None:
    torch.manual_seed(0)
    layer = stack_networks([Convolution(3, 5).double() for _ in range(2)])
    x, seen = torch.randn(2, 4, 7, 3, dtype=torch.float64), torch.ones(2, 4, 7, 1, dtype=torch.float64)
    result = layer(x, seen)
    for position in range(2):
        before, here, after = layer.places.weight[position].chunk(3)
        weight = torch.stack([before, here, after], dim=-1)
        plain = F.conv1d(x[position].transpose(1, 2), weight, padding=1).transpose(1, 2)
        torch.testing.assert_close(result[position], plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("replicas", [1, 3])
def test_without_gradients_rows_lie_packed_and_come_to_the_same(replicas: int) -> None:
    network = thinker(range(replicas), iterations=3).eval()
    ids = torch.tensor(
        [[5, 4, 5, 4, 5, 5, 4], [4, 5, *[PAD] * 5], [5, 5, 5, 4, 4, PAD, PAD], [PAD] * 7, [5, 4, *[PAD] * 5]]
    )
    source = ids.expand(replicas, *ids.shape)
    assert not network._packs(source)
    with_gradients = network(source, source)
    with torch.no_grad():
        assert network._packs(source)
        torch.testing.assert_close(network(source, source), with_gradients.detach(), rtol=0, atol=1e-12)


def test_replicas_that_read_different_rows_are_not_packed() -> None:
    network = thinker((0, 1)).eval()
    with torch.no_grad():
        assert not network._packs(torch.stack([SOURCE, SOURCE.flip(0)]))
        assert network._packs(torch.stack([SOURCE, SOURCE]))


def test_iterations_in_evaluation_grow_with_a_rows_own_length() -> None:
    network = thinker().eval()
    calls = 0
    think = network.think

    def counted(*parts: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return think(*parts)  # type: ignore[no-any-return]

    network.think = counted
    full = network(SOURCE[None], SOURCE[None])
    assert calls == 2 * 5
    calls = 0
    network(SOURCE[None, 1:, :2], SOURCE[None, 1:, :2])
    assert calls == 4, "never fewer than in training"
    x, state, seen = network.begin(SOURCE[None])
    for _ in range(4):
        state = think(x, state, seen)
    torch.testing.assert_close(full[:, 1], network.head(network.settled(state, seen))[:, 1], rtol=0, atol=1e-12)


def test_skipped_and_taught_iterations_are_uniform_within_the_most() -> None:
    built = training("deep_thinking", "progressive", [{}], 1, [f"r{i}" for i in range(1)])
    many = clock_of(built)
    many = type(many)(0, 1, 0, 0, torch.arange(20000))
    skipped, taught = built.stack.algorithm.drawn(4, many)  # type: ignore[operator]
    for n in range(4):
        here = taught[skipped == n]
        assert len(here) / 20000 == pytest.approx(0.25, abs=0.02)
        assert torch.bincount(here, minlength=6)[1 : 5 - n] / len(here) == pytest.approx(1 / (4 - n), abs=0.03)
        assert int(here.min()) == 1
        assert int(here.max()) == 4 - n


WEAK = {"teacher_percent": 50, "warmup": 0.5}


def student(each: Sequence[dict[str, Any]], steps: int = 8, names: Sequence[str] = ()) -> Training:
    """A linear classifier of 12 rows under weak-to-strong learning."""
    drawn = torch.Generator().manual_seed(0)
    numbers = torch.randn(12, 3, generator=drawn, dtype=torch.float64)
    label = (numbers[:, 0] > 0).long() + (numbers[:, 1] > 0).long()
    inputs = torch.zeros(12, 0, dtype=torch.int64), numbers
    data = Data(inputs, label[None], torch.ones(12, dtype=torch.int64), torch.ones(1, 12, dtype=torch.float64))
    names = names or [f"replica {position}" for position in range(len(each))]
    own = [settings("mlp", "weak_to_strong", width=4, **(WEAK | item)) for item in each]
    stack = ReplicaStack(
        "mlp", "weak_to_strong", own, names, Sizes(3, numbers=3), "classification", data, steps, torch.float64
    )
    return Training(stack, data, steps)


def test_the_teacher_learns_its_half_and_the_student_the_other_from_the_teachers_labels() -> None:
    built = student([{}, {}])
    algorithm: Any = built.stack.algorithm
    assert algorithm.taught.sum(1).tolist() == [6, 6]
    assert not torch.equal(algorithm.taught[0], algorithm.taught[1])
    for _ in range(3):
        drawn, before = batch_of(built), built.stack.network
        logits = before(*drawn.inputs).detach()
        built.step()
        for position in range(2):
            own = algorithm.taught[position, drawn.rows[position]]
            expected = F.cross_entropy(logits[position][own], drawn.target[position][own]) if bool(own.any()) else 0.0
            torch.testing.assert_close(float(built.losses[position]), float(expected), rtol=0, atol=1e-10)
    built.step()
    assert built.stage == 1
    assert not algorithm.taught.gather(1, batch_of(built).rows).any()
    torch.testing.assert_close(algorithm.weak.sum(-1), torch.ones(2, 12, dtype=torch.float64))
    assert not any(
        torch.equal(a, b) for a, b in zip(built.stack.network.parameters(), before.parameters(), strict=True)
    ), "the student is a fresh network"


def test_a_teacher_may_be_narrower_and_its_student_is_as_wide_as_without() -> None:
    built = student([{"teacher_width": 2}] * 2)
    widths = {tuple(p.shape) for p in built.stack.network.parameters()}
    assert (2, 2, 3) in widths
    for _ in range(4):
        built.step()
    assert {tuple(p.shape) for p in built.stack.network.parameters()} == {
        tuple(p.shape) for p in student([{}] * 2).stack.network.parameters()
    }


@pytest.mark.parametrize("steps", [2, 6])
def test_training_with_a_narrower_teacher_goes_on_from_a_checkpoint_of_either_stage(tmp_path: Any, steps: int) -> None:
    full, first, second = (student([{"teacher_width": 2, "candidates": 4}] * 2) for _ in range(3))
    full.run()

    class Killed(Exception):
        pass

    def watch(training: Training) -> None:
        if training.total == steps:
            save_checkpoint(training, tmp_path / "checkpoint.npz")
            raise Killed

    with pytest.raises(Killed):
        first.run(watch)
    assert resume_training(second, tmp_path / "checkpoint.npz")
    second.run()
    for item, other in zip(full.outcome.candidates, second.outcome.candidates, strict=True):
        check_alike(alone(item[1].network, 0), alone(other[1].network, 0), 0.0)
    for position in range(2):
        result, expected = (alone(x.outcome.ended[0].network, position) for x in (second, full))
        check_alike(result, expected, 0.0)


SOURCE_RANKING = torch.tensor([[[4, 5, 6], [6, 4, PAD]]])
WORDS = (EOS, 4, 5)


def writer(seeds: Sequence[int] = (0,), aligned: bool = False, name: str = "transformer") -> Any:
    """Untrained networks of the words 4 and 5, with weights large enough to be opinionated."""
    built = []
    for seed in seeds:
        torch.manual_seed(seed)
        file = load_module("baselines/networks", name, "network")
        network = file.Network(Sizes(6, source=7, aligned=aligned), settings(name, "erm", **TINY[name])).double()
        for weight in network.parameters():
            weight.data.mul_(2)
        built.append(network.eval())
    return stack_networks(built)


def chances(network: Any, source: Tensor, limit: int) -> dict[tuple[int, ...], float]:
    """The log-probability of every answer of at most `limit` tokens, by teaching each."""
    result = {}
    for length in range(1, limit + 1):
        for text in product(WORDS, repeat=length):
            if EOS in text[:-1] or (length < limit and text[-1] != EOS):
                continue
            target = torch.tensor(text)[None, None]
            logits = network(source, target)[0, 0]
            logits = logits[:, list(WORDS)].log_softmax(-1)
            places = torch.tensor([WORDS.index(token) for token in text])
            result[text] = float(logits.gather(1, places[:, None]).sum())
    return result


def text(ids: Tensor) -> tuple[int, ...]:
    return tuple(item for item in ids.tolist() if item != PAD)


def test_a_beam_as_wide_as_there_are_answers_finds_them_all_in_order() -> None:
    network = writer()
    with torch.no_grad():
        out, scores = search_beams(network, SOURCE_RANKING, 3, 15)
        for row in range(2):
            all_ = chances(network, SOURCE_RANKING[:, row : row + 1], 3)
            assert len(all_) == 15
            ranked = sorted(all_, key=all_.__getitem__, reverse=True)
            assert [text(ids) for ids in out[0, row]] == ranked
            torch.testing.assert_close(scores[0, row].tolist(), [all_[item] for item in ranked], rtol=0, atol=1e-10)


def test_answers_that_there_are_not_have_no_chance() -> None:
    _, scores = search_beams(writer(), SOURCE_RANKING, 1, 5)
    assert torch.isfinite(scores).sum(-1).tolist() == [[3, 3]]


@pytest.mark.parametrize("name", ["transformer", "lstm"])
@pytest.mark.parametrize("aligned", [False, True])
def test_a_beam_of_one_is_greedy_decoding(name: str, aligned: bool) -> None:
    network = writer((0, 1, 2), aligned, name)
    source = SOURCE_RANKING.expand(3, -1, -1)
    out, _ = search_beams(network, source, 5, 1, aligned)
    assert torch.equal(out[:, :, 0], decode_greedily(network, source, 5, aligned))


def test_samples_come_as_often_as_the_network_says_at_its_temperature() -> None:
    network = writer()
    count = 4000
    source = SOURCE_RANKING[:, :1].expand(1, count, -1)
    with torch.no_grad():
        logits, _ = network.step(network.start(SOURCE_RANKING[:, :1]), torch.tensor([[BOS]]))
        first = logits[0, 0, list(WORDS)]
        for temperature in (0.5, 3.0):
            out = sample_answers(network, source, 2, torch.tensor([temperature]), make_keys(["a"]))[0]
            result = torch.bincount(out[:, 0], minlength=6)[list(WORDS)] / count
            torch.testing.assert_close(result.double(), (first / temperature).softmax(0), rtol=0, atol=0.03)
        assert (out[out[:, 0] == EOS, 1] == PAD).all()
        assert (out[:, 1] != BOS).all()


def test_a_verdict_is_read_after_the_whole_answer() -> None:
    built = training("transformer", "re_ranking", [{}])
    network, drawn = built.stack.network, batch_of(built)
    source, target = drawn.inputs
    verdicts = network.judge_answers(source, target)
    for row in range(4):
        length = int((target[0, row] != PAD).sum())
        full = target[:, row : row + 1, :length]
        features = network.judge.features(source[:, row : row + 1], full)[0, 0, -1]
        expected = features @ network.verdict.weight[0, 0] + network.verdict.bias[0, 0]
        torch.testing.assert_close(verdicts[0, row], expected, rtol=0, atol=1e-10)
        # An answer that was cut off is judged as if it ended there, which the judge reads only after it.
        cut = network.judge_answers(source[:, row : row + 1], full[..., :-1])
        torch.testing.assert_close(cut[0, 0], verdicts[0, row], rtol=0, atol=1e-10)


def test_first_the_writer_learns_then_the_judge() -> None:
    built = training("lstm", "re_ranking", [{"judge_percent": 50}] * 2, 4)
    assert built.stages == (2, 2)
    start = alone(built.stack.network, 0)
    for _ in range(2):
        built.step()
    middle = alone(built.stack.network, 0)
    check_alike(start.judge, middle.judge, 0)
    assert not torch.equal(start.writer.head.weight, middle.writer.head.weight)
    for _ in range(2):
        built.step()
    check_alike(middle.writer, alone(built.stack.network, 0).writer, 0)
    assert not torch.equal(middle.verdict.weight, alone(built.stack.network, 0).verdict.weight)


def test_the_judges_loss_is_that_of_its_verdicts_on_samples_and_truths() -> None:
    each = [{"temperature": 0.7}, {"temperature": 2.0}]
    built = training("lstm", "re_ranking", each, 4)
    algorithm, network, drawn = built.stack.algorithm, built.stack.network, batch_of(built)
    later = type(clock_of(built))(0, 1, 1, 3, built.stack.keys)
    losses, longest = algorithm.loss(network, drawn, later), int(built.data.lengths.max())
    for position in range(2):
        plain = alone(network, position)
        source, target = (x[position : position + 1] for x in drawn.inputs)
        item = later.draw("re_ranking")[position : position + 1]
        answers = sample_answers(plain.writer, source, longest, torch.tensor([each[position]["temperature"]]), item)
        total = torch.zeros((), dtype=torch.float64)
        for row in range(4):
            right = float(text(answers[0, row]) == text(target[0, row]))
            for written, truth in ((answers, right), (target, 1.0)):
                verdict = plain.judge_answers(source[:, row : row + 1], written[:, row : row + 1])[0, 0]
                chance = torch.sigmoid(verdict)
                total = total - (truth * chance.log() + (1 - truth) * (1 - chance).log()) / 8
        torch.testing.assert_close(losses[position], total, rtol=0, atol=1e-10)


def test_the_answer_is_the_one_most_likely_to_be_given_and_judged_right() -> None:
    built = training("transformer", "re_ranking", [{"answers": 3}] * 2)
    network = built.stack.network.eval()
    source = built.data.inputs[0][:5].expand(2, -1, -1)
    with torch.no_grad():
        result = network.generate(source, 6)
        candidates, scores = search_beams(network.writer, source, 6, 3)
        for k in range(2):
            for row in range(5):
                verdicts = [
                    network.judge_answers(source, candidates[:, :, item])[k, row].sigmoid() for item in range(3)
                ]
                chances_ = [float(scores[k, row, item].exp() * verdicts[item]) for item in range(3)]
                assert torch.equal(result[k, row], candidates[k, row, chances_.index(max(chances_))])


def test_a_judge_that_is_sure_overrules_the_writer() -> None:
    network = training("transformer", "re_ranking", [{"answers": 3}]).stack.network.eval()
    source = training("transformer", "erm", [{}]).data.inputs[0][None, :1]
    candidates, _ = search_beams(network.writer, source, 6, 3)
    network.judge_answers = lambda _, written: torch.where((written == candidates[:, 0, 2, None]).all(-1), 30.0, -30.0)
    assert torch.equal(network.generate(source, 6)[0, 0], candidates[0, 0, 2])


def test_one_answer_is_the_writers_own() -> None:
    network = training("transformer", "re_ranking", [{"answers": 1}]).stack.network.eval()
    source = training("transformer", "erm", [{}]).data.inputs[0][None, :6]
    assert torch.equal(network.generate(source, 6), decode_greedily(network.writer, source, 6))


def test_a_re_ranked_network_learns_a_tiny_task() -> None:
    fast = {"lr": 0.01, "batch_size": 36, "clip": 1.0, "width": 24, "judge_percent": 20}
    built = recipe("lstm", 150, **fast).model_copy(update={"algorithm": "re_ranking"})
    assert accuracy(trained(built, TURN, commands()), TURN, commands()) > 0.9


def test_probabilities_of_candidates_are_of_the_words_alone() -> None:
    _, scores = search_beams(writer(), SOURCE_RANKING, 1, 3)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(1, 2, dtype=torch.float64))
    assert F.relu(scores).sum() == 0
