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

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...core.errors import ModelError
from ..encoding.decoding import State, StepDecoder
from ..encoding.encoding import BOS, EOS, PAD, UNKNOWN
from ..layers.linear import Linear
from ..replicas.rng import derive_stream, draw_uniform
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, Data, StepState
from ._plain import use_evaluation_mode

KIND = "easy-to-hard"
CITATION = (
    "Sun, Yu, Shen, Liu, Yang, Welleck and Gan, Easy-to-hard generalization: scalable alignment beyond human "
    "supervision, NeurIPS 2024 (arXiv:2403.09472)"
)
TASKS = ("sequence",)
SETTINGS: dict[str, Any] = {"answers": 4, "temperature": 1.5, "judge_percent": 25}
"""answers: how many are judged. temperature: of the samples on which the judge is trained. judge_percent: the
percentage of the steps that train the judge."""
SEARCH: dict[str, Any] = {"temperature": ["uniform", 0.7, 2.0], "answers": ["choice", 2, 4, 8, 16]}
LIMITS = {"judge_percent": "below 100"}


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


def _find_banned_tokens(source: Tensor, aligned: bool) -> Tensor:
    return torch.tensor([PAD, BOS, UNKNOWN, *([EOS] if aligned else [])], device=source.device)


def _compute_max_lengths(source: Tensor, limit: int, aligned: bool) -> Tensor:
    """The most tokens of each row's answer, (K, n)."""
    return (source != PAD).sum(dim=-1) if aligned else torch.full_like(source[..., 0], limit)


@torch.no_grad()
def sample_answers(
    network: StepDecoder, source: Tensor, limit: int, temperature: Tensor, keys: Tensor, aligned: bool = False
) -> Tensor:
    """One answer a row, each token drawn from the softmax of its logits over `temperature` (K,): ids (K, n, limit), PAD
    after the end. keys: (K,), of the draws."""
    lengths = _compute_max_lengths(source, limit, aligned)
    out = torch.full((*lengths.shape, limit), PAD, dtype=torch.int64, device=source.device)
    token, alive = torch.full_like(lengths, BOS), lengths > 0
    banned, state = _find_banned_tokens(source, aligned), network.start(source)
    for position in range(limit):
        if not bool(alive.any()):
            break
        logits, state = network.step(state, token)
        ends = (logits / temperature[:, None, None]).index_fill(-1, banned, -torch.inf).softmax(-1).cumsum(-1)
        drawn = (
            draw_uniform(derive_stream(keys, "token", position), token.shape[1:], ends.dtype)[..., None]
            * ends[..., -1:]
        )
        token = torch.searchsorted(ends, drawn, right=True)[..., 0].clamp(max=ends.shape[-1] - 1)
        out[..., position] = torch.where(alive, token, PAD)
        alive = alive & (token != EOS) & (lengths > position + 1)
    return out


@torch.no_grad()
def search_beams(
    network: StepDecoder, source: Tensor, limit: int, width: int, aligned: bool = False
) -> tuple[Tensor, Tensor]:
    """The likeliest answers that beam search finds: ids (K, n, width, T), PAD after the end, and the log-probability of
    each, (K, n, width), falling; -inf where there are fewer.

    A beam that has ended stays while it is among the likeliest. Log-probabilities are not divided by lengths."""
    replicas, rows = source.shape[:2]
    lengths = _compute_max_lengths(source, limit, aligned)
    longest = int(lengths.max()) if lengths.numel() else 0
    banned = _find_banned_tokens(source, aligned)
    out = torch.full((replicas, rows, width, longest), PAD, dtype=torch.int64, device=source.device)
    token = torch.full((replicas, rows * width), BOS, dtype=torch.int64, device=source.device)
    ended = (lengths == 0)[..., None].expand(-1, -1, width)
    state = {name: tensor.repeat_interleave(width, dim=1) for name, tensor in network.start(source).items()}
    scores: Tensor | None = None
    for position in range(longest):
        if bool(ended.all()):
            break
        logits, state = network.step(state, token)
        logs = logits.index_fill(-1, banned, -torch.inf).log_softmax(-1).view(replicas, rows, width, -1)
        if scores is None:
            scores = torch.full((replicas, rows, width), -torch.inf, dtype=logs.dtype, device=source.device)
            scores[..., 0] = 0  # all beams are one at first
        stays = torch.full_like(logs, -torch.inf)
        stays[..., PAD] = 0
        totals = (scores[..., None] + torch.where(ended[..., None], stays, logs)).flatten(2)
        scores, chosen = totals.topk(width, dim=2)
        before, words = chosen // logs.shape[-1], chosen % logs.shape[-1]
        out = out.gather(2, before[..., None].expand_as(out))
        out[..., position] = words
        ended = ended.gather(2, before) | (words == EOS) | (lengths[..., None] <= position + 1)
        token, state = words.flatten(1), _reorder_state(state, before)
    if scores is None:
        scores = torch.zeros(replicas, rows, width, device=source.device)
    return out, scores


def _reorder_state(state: State, before: Tensor) -> State:
    """The state of each beam (K, n, width), taken from the beam that it continues."""
    replicas, rows, width = before.shape
    places = (before + torch.arange(rows, device=before.device)[:, None] * width).flatten(1)
    replica = torch.arange(replicas, device=before.device)[:, None]
    return {name: tensor[replica, places] for name, tensor in state.items()}
