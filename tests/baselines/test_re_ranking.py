"""Re-ranking: candidates by beam search and sampling, and a judge that chooses among them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms._candidates import sample_answers, search_beams
from farshift.baselines.encoding.decoding import decode_greedily
from farshift.baselines.encoding.encoding import BOS, EOS, PAD, Sizes
from farshift.baselines.replicas.rng import make_keys
from farshift.baselines.replicas.stacked import stack_networks
from farshift.core.plugins import load_module
from torch import Tensor

from .small_sequences import TINY, alone, batch, check_alike, clock, settings, training
from .toys import TURN, accuracy, commands, recipe, trained

SOURCE = torch.tensor([[[4, 5, 6], [6, 4, PAD]]])
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
        out, scores = search_beams(network, SOURCE, 3, 15)
        for row in range(2):
            all_ = chances(network, SOURCE[:, row : row + 1], 3)
            assert len(all_) == 15
            ranked = sorted(all_, key=all_.__getitem__, reverse=True)
            assert [text(ids) for ids in out[0, row]] == ranked
            torch.testing.assert_close(scores[0, row].tolist(), [all_[item] for item in ranked], rtol=0, atol=1e-10)


def test_answers_that_there_are_not_have_no_chance() -> None:
    _, scores = search_beams(writer(), SOURCE, 1, 5)
    assert torch.isfinite(scores).sum(-1).tolist() == [[3, 3]]


@pytest.mark.parametrize("name", ["transformer", "lstm"])
@pytest.mark.parametrize("aligned", [False, True])
def test_a_beam_of_one_is_greedy_decoding(name: str, aligned: bool) -> None:
    network = writer((0, 1, 2), aligned, name)
    source = SOURCE.expand(3, -1, -1)
    out, _ = search_beams(network, source, 5, 1, aligned)
    assert torch.equal(out[:, :, 0], decode_greedily(network, source, 5, aligned))


def test_beams_of_stacked_networks_are_those_of_each_alone() -> None:
    out, scores = search_beams(writer((0, 1)), SOURCE.expand(2, -1, -1), 4, 3)
    for seed in range(2):
        item, likely = search_beams(writer((seed,)), SOURCE, 4, 3)
        assert torch.equal(out[seed], item[0])
        torch.testing.assert_close(scores[seed], likely[0], rtol=0, atol=1e-12)


def test_samples_come_as_often_as_the_network_says_at_its_temperature() -> None:
    network = writer()
    count = 4000
    source = SOURCE[:, :1].expand(1, count, -1)
    with torch.no_grad():
        logits, _ = network.step(network.start(SOURCE[:, :1]), torch.tensor([[BOS]]))
        first = logits[0, 0, list(WORDS)]
        for temperature in (0.5, 3.0):
            out = sample_answers(network, source, 2, torch.tensor([temperature]), make_keys(["a"]))[0]
            result = torch.bincount(out[:, 0], minlength=6)[list(WORDS)] / count
            torch.testing.assert_close(result.double(), (first / temperature).softmax(0), rtol=0, atol=0.03)
        assert (out[out[:, 0] == EOS, 1] == PAD).all()
        assert (out[:, 1] != BOS).all()


def test_a_verdict_is_read_after_the_whole_answer() -> None:
    built = training("transformer", "re_ranking", [{}])
    network, drawn = built.stack.network, batch(built)
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
    algorithm, network, drawn = built.stack.algorithm, built.stack.network, batch(built)
    later = type(clock(built))(0, 1, 1, 3, built.stack.keys)
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
    _, scores = search_beams(writer(), SOURCE, 1, 3)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(1, 2, dtype=torch.float64))
    assert F.relu(scores).sum() == 0
