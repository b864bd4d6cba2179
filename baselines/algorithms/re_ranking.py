"""Re-ranking by an evaluator: of several answers that a network proposes, a judge chooses one.

Sun et al., "Easy-to-hard generalization: scalable alignment beyond human supervision", NeurIPS 2024 (arXiv:2403.09472):
to judge answers generalises to harder problems than to give them, so an evaluator trained on easy problems helps on
hard ones. Here, in the simplest form of theirs (an outcome reward model and best-of-n):

1. the writer is trained as usual;
2. then the judge, a second network of the same kind that reads an input and a proposed answer, learns whether the
   answer is the true one: L = (BCE(J(x, y'), [y' = y]) + BCE(J(x, y), 1)) / 2, with y' sampled at a `temperature` from
   the writer, which is frozen, on the training rows;
3. to answer, the writer's `answers` likeliest answers by beam search are judged, and the y with the largest
   p(y | x) sigmoid(J(x, y)) is given: what the paper's weighted voting comes to for many samples, without drawing any,
   so that an answer does not depend on the other rows.

Known limits: the judge sees the writer's errors on rows that the writer was trained on, so that a temperature is needed
to have any errors; the paper's judges are large pretrained models, and it judges steps too.

Not compared with released code: the released code trains large language models as judges; this is the simplest form of
the method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...core.errors import ModelError
from ..encoding.encoding import EOS, PAD
from ..layers.linear import Linear
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, Data, StepState
from ._candidates import sample_answers, search_beams
from ._plain import use_evaluation_mode

KIND = "easy-to-hard"
CITATION = (
    "Sun, Yu, Shen, Liu, Yang, Welleck and Gan, Easy-to-hard generalization: scalable alignment beyond human "
    "supervision, NeurIPS 2024 (arXiv:2403.09472)"
)
TASKS = ("sequence",)
TOUCHES = ("train",)
SETTINGS: dict[str, Any] = {"answers": 4, "temperature": 1.5, "judge_percent": 25}
"""answers: how many are judged. temperature: of the samples on which the judge is trained. judge_percent: the
percentage of the steps that train the judge."""
SEARCH: dict[str, Any] = {"temperature": ["uniform", 0.7, 2.0], "answers": ["choice", 2, 4, 8, 16]}


class ReRanker(nn.Module):
    """A writer, and a judge that chooses among its answers. It is trained as the writer is."""

    def __init__(self, writer: Any, judge: Any, verdict: Linear, answers: int) -> None:
        super().__init__()
        self.writer, self.judge, self.verdict, self.answers = writer, judge, verdict, answers
        self.aligned: bool = writer.aligned

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.writer(source, target)

    def judge_answers(self, source: Tensor, written: Tensor) -> Tensor:
        """The logit (K, n) of whether `written` (K, n, T) answers source ids (K, n, S), read off after its end."""
        count = (written != PAD).sum(dim=-1, keepdim=True)
        ended = (written == EOS).any(dim=-1, keepdim=True)
        last = torch.where(ended, count - 1, count)
        sequence = F.pad(written, (0, 1), value=PAD).scatter(-1, last, EOS)
        features = self.judge.features(source, sequence)
        read = features.gather(2, last[..., None].expand(-1, -1, -1, features.shape[-1]))
        verdicts: Tensor = self.verdict(read)
        return verdicts[..., 0, 0]

    @torch.no_grad()
    def generate(self, source: Tensor, limit: int) -> Tensor:
        """The answer that is likely and judged right for source ids (K, n, S): ids (K, n, T)."""
        written, likely = search_beams(self.writer, source, limit, self.answers, self.aligned)
        if not written.shape[-1]:
            return written[:, :, 0]
        repeated_source = source.repeat_interleave(self.answers, dim=1)
        verdicts = self.judge_answers(repeated_source, written.flatten(1, 2)).view(likely.shape)
        best = (likely + F.logsigmoid(verdicts)).argmax(dim=2)
        return written.gather(2, best[..., None, None].expand(-1, -1, 1, written.shape[-1]))[:, :, 0]


class Algorithm(BaseAlgorithm):
    def assemble(self, build: Build) -> Any:
        """`ModelError` for networks that do not write token by token."""
        writer, judge = build("weights"), build("judge")
        if not hasattr(writer, "step"):
            raise ModelError("re_ranking samples token by token: use an encoder-decoder, such as lstm or transformer")
        width = judge.head.weight.shape[-1]
        return ReRanker(
            writer, judge, self.about.each(lambda: Linear(width, 1), "verdict"), self.hyperparameters["answers"]
        )

    def stages(self, steps: int) -> tuple[int, ...]:
        second = steps * self.hyperparameters["judge_percent"] // 100
        if second == steps:
            raise ModelError(
                f"setting judge_percent = {self.hyperparameters['judge_percent']}: the generator is left without a step"
            )
        return (steps - second, second) if second else (steps,)

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        return data, False

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        if clock.stage == 0:
            return average_over_batch(cross_entropy(network(*batch.inputs), batch.target), batch)
        source, target = batch.inputs
        # The longest of all rows, not of this batch, which depends on the replicas that share it.
        longest = int(self.about.data.lengths.max())
        target = F.pad(target, (0, longest - target.shape[-1]), value=PAD)
        temperature, keys = self.hyperparameters["temperature"], clock.draw("re_ranking")
        with use_evaluation_mode(network.writer, self.rng):
            proposed = sample_answers(network.writer, source, longest, temperature, keys, network.aligned)
        right = (proposed == target).all(dim=-1)
        truth = torch.ones_like(right)
        errors = self._errors(network, source, proposed, right) + self._errors(network, source, target, truth)
        return 0.5 * average_over_batch(errors, batch)

    @staticmethod
    def _errors(network: ReRanker, source: Tensor, written: Tensor, right: Tensor) -> Tensor:
        """Of each row, (K, n)."""
        verdicts = network.judge_answers(source, written)
        return F.binary_cross_entropy_with_logits(verdicts, right.to(verdicts.dtype), reduction="none")
