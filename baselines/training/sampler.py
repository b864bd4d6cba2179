"""The training rows of a replica stack on its device, and the batches that each replica draws from them.

A batch is a pure function of (replica's key, step): there is no state, so training can resume anywhere, and a replica
draws the same rows alone or among many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.encoding import PAD, Encoded
from ..encoding.stored_rows import PixelRows, TokenRows
from ..replicas.hyperparameters import Hyperparameters
from ..replicas.rng import derive_stream, draw_permutations, draw_uniform


@dataclass(frozen=True)
class Data:
    """Training rows. R is 1 if all replicas share a column, else K.

    inputs: the network's arguments, each (N, ..), shared by all replicas.
    target: (R, N) class ids, or numbers as floats; or (R, N, T) token ids, a sequence network's last input too.
    lengths: (N,), of the targets (1, or the input's in tokens): rows of similar length can be drawn together.
    weight: (R, N), not negative; a row of weight 0 is never drawn.
    group: (N,) environments 0 .. E - 1, or None.
    unlabelled: inputs of shifted test rows, each (M, ..), if the protocol permits training on them.
    held_out: labelled rows that are not trained on, by the name of their part: `id_val`, and `ood_val` if permitted.
    """

    inputs: tuple[Tensor, ...]
    target: Tensor
    lengths: Tensor
    weight: Tensor
    group: Tensor | None = None
    unlabelled: tuple[Tensor, ...] | None = None
    held_out: Mapping[str, Data] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lengths)

    def __deepcopy__(self, _: Any) -> Data:
        return self  # it is never changed

    @classmethod
    def of(cls, encoded: Encoded, weight: Tensor, group: Tensor | None = None) -> Data:
        return cls(encoded.inputs, encoded.target[None], encoded.lengths, weight[None], group)

    @property
    def environments(self) -> int:
        """The number of environments of the rows; 0 if they are not known."""
        return 0 if self.group is None else int(self.group.max()) + 1

    def to(self, device: str | torch.device) -> Data:
        moved = {name: _move_value(value, device) for name, value in self.__dict__.items()}
        return Data(**moved)

    def changed(self, weight: Tensor, target: Tensor) -> Data:
        """The same rows with other weights (R, N) and targets (R, N, ..)."""
        return replace(self, weight=weight, target=target)

    def picked(self, which: Tensor) -> Data:
        """The same for some of the replicas."""
        return replace(
            self,
            target=self.target if len(self.target) == 1 else self.target[which.to(self.target.device)],
            weight=self.weight if len(self.weight) == 1 else self.weight[which.to(self.weight.device)],
        )


def _move_value(value: Any, device: str | torch.device) -> Any:
    if isinstance(value, tuple):
        return tuple(item.to(device) for item in value)
    if isinstance(value, Mapping):
        return {name: item.to(device) for name, item in value.items()}
    return value if value is None else value.to(device)


@dataclass(frozen=True)
class Batch:
    """The rows of every replica in one step.

    inputs: each (K, n, ..); target: (K, n) or (K, n, T); rows: (K, n), their indices in the training data.
    weight: (K, n) of a full batch of weighted rows; None if all weights are equal.
    group: (K, n), or None. environments: E if the n rows are E equal shares, one environment after the other; else
    0.
    unlabelled: inputs of as many shifted test rows, or None.
    """

    inputs: tuple[Tensor, ...]
    target: Tensor
    rows: Tensor
    weight: Tensor | None = None
    group: Tensor | None = None
    environments: int = 0
    unlabelled: tuple[Tensor, ...] | None = None


class Order:
    """Row indices for each step: epoch after epoch, each row as often as its weight says."""

    def __init__(self, weight: Tensor, keys: Tensor, name: str) -> None:
        """weight: (R, N). Integer weights are numbers of copies, all drawn once an epoch in random order; other weights
        are probabilities, drawn with replacement."""
        self.keys = derive_stream(keys, name)
        self.weight = weight
        self.copies: list[Tensor] | None = None
        if bool((weight == weight.round()).all()):
            places = torch.arange(weight.shape[1], device=weight.device)
            self.copies = [places.repeat_interleave(row.long()) for row in weight]
            self._epoch_orders: dict[int, tuple[int, Tensor]] = {}
        else:
            self.ends = weight.double().cumsum(1)

    def draw(self, first: int, count: int) -> Tensor:
        """Row indices first .. first + count - 1 of each replica's endless stream, (K, count)."""
        if self.copies is None:
            return self._by_chance(first, count)
        if len(self.copies) == 1:
            return self._epochs(0, self.copies[0], self.keys, first, count)
        each = [
            self._epochs(replica, copies, self.keys[replica : replica + 1], first, count)
            for replica, copies in enumerate(self.copies)
        ]
        return torch.cat(each)

    def _epochs(self, replica: int, copies: Tensor, keys: Tensor, first: int, count: int) -> Tensor:
        length = len(copies)
        pieces = []
        while count > 0:
            epoch, start = divmod(first, length)
            some = min(count, length - start)
            pieces.append(self._shuffled(replica, copies, keys, epoch)[:, start : start + some])
            first, count = first + some, count - some
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=1)

    def _shuffled(self, replica: int, copies: Tensor, keys: Tensor, epoch: int) -> Tensor:
        cached = self._epoch_orders.get(replica)
        if cached is None or cached[0] != epoch:
            cached = epoch, copies[draw_permutations(derive_stream(keys, "epoch", epoch), len(copies))]
            self._epoch_orders[replica] = cached
        return cached[1]

    def _by_chance(self, first: int, count: int) -> Tensor:
        where = draw_uniform(derive_stream(self.keys, "chance", first), (count,), torch.float64) * self.ends[:, -1:]
        ends = self.ends.expand(len(where), -1).contiguous()
        return torch.searchsorted(ends, where, right=True).clamp_(max=ends.shape[1] - 1)


class Sampler:
    """The batches of a replica stack. `size` rows a step (0: full batches); in `environments`, `size` rows of each."""

    def __init__(self, data: Data, keys: Tensor, settings: Hyperparameters, by_environment: bool) -> None:
        self.data, self.keys = data, keys
        self.size, self.pool, self.chunk = settings["batch_size"], settings["pool"], settings["chunk"]
        self.environments = data.environments if by_environment else 0
        lazy = [x for x in (*data.inputs, *(data.unlabelled or ())) if isinstance(x, PixelRows)]
        self.streamed = bool(lazy)
        """Whether rows are gathered on the host: they are then drawn there, one step ahead."""
        if self.streamed and not (self.size or self.environments or self.chunk):
            raise ModelError(
                "setting batch_size = 0: a full batch has all rows on the device, and these are streamed: "
                "set batch_size, or chunk, or feed = 'resident'"
            )
        device = torch.device("cpu") if self.streamed else keys.device
        self._batches: dict[int, Future[Batch]] = {}
        self._thread = ThreadPoolExecutor(1)
        weights = [data.weight]
        if self.environments:
            if not self.size:
                self.size = int(torch.bincount(data.group).min())  # type: ignore[arg-type]
            weights = [data.weight * (data.group == environment) for environment in range(self.environments)]
            for environment, weight in enumerate(weights):
                if not bool((weight.sum(1) > 0).all()):
                    raise ModelError(f"environment {environment} has no training row left")
        self.orders = [
            Order(weight.to(device), keys.to(device), f"order/{environment}" if self.environments else "order")
            for environment, weight in enumerate(weights)
        ]
        self._lengths = data.lengths.to(device)
        self._full_batches: list[tuple[Batch, Tensor | None]] = []
        self.unlabelled: Order | None = None
        if data.unlabelled is not None:
            rows = len(data.unlabelled[0])
            self.unlabelled = Order(torch.ones(1, rows, device=device), keys.to(device), "unlabelled")

    @property
    def drawn(self) -> int:
        """Rows in a batch of one replica."""
        return (self.size or len(self.data)) * max(1, self.environments)

    def batches(self, step: int) -> Iterator[tuple[Batch, Tensor | None]]:
        """The batch of a step; a full batch comes in chunks, each with the share (K,) of its rows in the total
        weight."""
        if self.size or self.environments:
            yield self.batch(step), None
            return
        if self.streamed:  # read anew in every step
            yield from self._chunks()
            return
        if not self._full_batches:
            self._full_batches = list(self._chunks())
        yield from self._full_batches

    def _chunks(self) -> Iterator[tuple[Batch, Tensor | None]]:
        """All rows, in one batch or in chunks."""
        data = self.data
        weight = data.weight.expand(len(self.keys), -1)
        even = bool((data.weight == data.weight[:, :1]).all())
        places = torch.arange(len(data), device=data.lengths.device)
        for some in torch.split(places, self.chunk or len(data)):
            batch = self._every(some)
            if not even:
                batch = replace(batch, weight=weight[:, some])
            if self.chunk:
                yield batch, weight[:, some].sum(1) / weight.sum(1)
            else:
                unlabelled = None if data.unlabelled is None else tuple(self._to_all(x) for x in data.unlabelled)
                yield replace(batch, unlabelled=unlabelled), None

    def _to_all(self, x: Tensor) -> Tensor:
        """Expand rows to all replicas, without a copy."""
        return x.expand(len(self.keys), *x.shape)

    def _every(self, some: Tensor) -> Batch:
        """A batch of the same rows for all replicas."""
        data = self.data
        longest = int(data.lengths[some].max())
        target = data.target[:, some].expand(len(self.keys), *(len(some), *data.target.shape[2:]))
        inputs = tuple(self._to_all(x[some]) for x in data.inputs)
        if target.ndim == 3:
            target = target[..., :longest]
            inputs = (trim_padding(inputs[0]), target)
        group = None if data.group is None else self._to_all(data.group[some])
        return Batch(inputs, target, self._to_all(some), None, group)

    def batch(self, step: int) -> Batch:
        """The batch of `size` rows (of each environment) of a step. A streamed one is gathered by a thread while the
        step before is computed, and kept until the next step, since some steps request their batch twice."""
        if not self.streamed:
            return self._gather(step)
        self._batches = {at: self._batches.get(at) or self._thread.submit(self._gather, at) for at in (step, step + 1)}
        return self._batches[step].result()

    def _gather(self, step: int) -> Batch:
        if self.environments:
            rows = torch.cat([order.draw(step * self.size, self.size) for order in self.orders], dim=1)
        else:
            rows = self._pooled(step) if self.pool > 1 else self.orders[0].draw(step * self.size, self.size)
        batch = self.select_rows(rows)
        if self.unlabelled is None or self.data.unlabelled is None:
            return batch
        shifted = self.unlabelled.draw(step * self.size, self.size)
        return replace(batch, unlabelled=tuple(gather_rows(x, shifted) for x in self.data.unlabelled))

    def _pooled(self, step: int) -> Tensor:
        """Rows of similar length: the rows of `pool` steps are sorted by length and assigned to steps in random
        order."""
        window, position = divmod(step, self.pool)
        rows = self.orders[0].draw(window * self.pool * self.size, self.pool * self.size)
        order = self._lengths[rows].argsort(dim=1, stable=True)
        rows = rows.gather(1, order).view(len(rows), self.pool, self.size)
        turn = draw_permutations(derive_stream(self.keys, "pool", window).to(rows.device), self.pool)[:, position]
        return rows[torch.arange(len(rows), device=rows.device), turn.expand(len(rows))]

    def select_rows(self, rows: Tensor) -> Batch:
        """The training rows with these indices (K or 1, n)."""
        return replace(select_batch(self.data, rows.expand(len(self.keys), -1)), environments=self.environments)


def select_batch(data: Data, rows: Tensor) -> Batch:
    """The training rows with these indices (K, n), without columns in which all of them are padding."""
    host, rows = rows, rows.to(data.lengths.device, non_blocking=True)
    if len(data.target) == 1:
        target = data.target[0][rows]
    else:
        target = data.target[torch.arange(len(rows), device=rows.device)[:, None], rows]
    inputs = tuple(gather_rows(x, host) for x in (data.inputs[:1] if target.ndim == 3 else data.inputs))
    if target.ndim == 3:
        target = target[..., : max(1, int(data.lengths[rows].max()))]
        inputs = (trim_padding(inputs[0]), target)
    return Batch(inputs, target, rows, group=None if data.group is None else data.group[rows])


def gather_rows(x: Tensor, rows: Tensor) -> Tensor:
    """x (N, ..) at rows (K, n): (K, n, ..). Gathering row by row is several times as fast as indexing all axes."""
    if isinstance(x, PixelRows):
        return x.at(rows.cpu())
    if isinstance(x, TokenRows):
        return x.at(rows)
    rows = rows.to(x.device)
    return x.index_select(0, rows.reshape(-1)).view(*rows.shape, *x.shape[1:])


def count_columns(ids: Tensor) -> Tensor:
    """The number of columns of each replica's rows, (K,) int64, for ids (K, n, S) padded at the end."""
    return (ids != PAD).any(dim=1).sum(dim=-1)


def trim_padding(source: Tensor) -> Tensor:
    """Source ids without the columns in which all of them are padding; at least one column, if all texts are empty."""
    return source[..., : max(1, int((source != PAD).flatten(0, -2).any(dim=0).sum()))]
