"""Recurrences over time with hand-written gradients: LSTM, GRU and Elman's network for many replicas at once.

Every function here takes inputs x (B, T, n, I), time before rows, and weights with the batch B as first axis: B counts
replicas, or replicas times directions. `into` (B, I, gates * W) are the weights of the input, `again`
(B, W, gates * W) those of the state before, h and c (B, n, W) the first states.

An autograd graph of one node for each gate and step costs more than the arithmetic of small networks. Here a whole
sequence is one node: gates are stored in the forward pass, what does not depend on later steps is computed for all
steps at once, and each weight's gradient is one product at the end. A gradient that is itself to be differentiated
(create_graph=True) goes through the same recurrence written step by step, so that second derivatives are right.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

# Derivatives in one pass and in place: temporaries of a whole sequence cost more than the arithmetic.
_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


def lstm(x: Tensor, into: Tensor, again: Tensor, bias: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states and cells of every step, each (B, T, n, W). bias: (B, 4 W).

    Hochreiter and Schmidhuber, Neural Computation 1997, with a forget gate (Gers et al., Neural Computation 2000).
    Gates are in the order candidate, input, forget, output."""
    return _LSTM.apply(x, into, again, bias, h, c)  # type: ignore[no-untyped-call]


def gru(x: Tensor, into: Tensor, again: Tensor, bias: Tensor, h: Tensor) -> tuple[Tensor]:
    """Hidden states of every step (B, T, n, W). bias: (B, 4 W).

    Cho et al., EMNLP 2014 (arXiv:1406.1078), with the reset gate after the product, as in cuDNN. Gates are in the order
    reset, update, candidate; the fourth part of the bias is the candidate's that is inside the reset."""
    hidden: Tensor = _GRU.apply(x, into, again, bias, h)  # type: ignore[no-untyped-call]
    return (hidden,)


def elman(x: Tensor, into: Tensor, again: Tensor, bias: Tensor, h: Tensor) -> tuple[Tensor]:
    """Hidden states of every step (B, T, n, W), with tanh (Elman, Cognitive Science 1990). bias: (B, W)."""
    hidden: Tensor = _Elman.apply(x, into, again, bias, h)  # type: ignore[no-untyped-call]
    return (hidden,)


def lstm_by_steps(x: Tensor, into: Tensor, again: Tensor, bias: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """`lstm` as plain differentiable operations."""
    hidden, cells = [], []
    for projected in _project_inputs(x, into, bias).unbind(1):
        g, i, f, o = torch.baddbmm(projected, h, again).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        hidden.append(h)
        cells.append(c)
    return torch.stack(hidden, dim=1), torch.stack(cells, dim=1)


def gru_by_steps(x: Tensor, into: Tensor, again: Tensor, bias: Tensor, h: Tensor) -> tuple[Tensor]:
    """`gru` as plain differentiable operations."""
    width, hidden = h.shape[-1], []
    outer, inner = _split_gru_biases(bias, width)
    for projected in _project_inputs(x, into, outer).unbind(1):
        r, z, n = projected.chunk(3, dim=-1)
        of_r, of_z, of_n = torch.baddbmm(inner[:, None], h, again).chunk(3, dim=-1)
        n = torch.tanh(n + torch.sigmoid(r + of_r) * of_n)
        h = torch.lerp(n, h, torch.sigmoid(z + of_z))
        hidden.append(h)
    return (torch.stack(hidden, dim=1),)


def elman_by_steps(x: Tensor, into: Tensor, again: Tensor, bias: Tensor, h: Tensor) -> tuple[Tensor]:
    """`elman` as plain differentiable operations."""
    hidden = []
    for projected in _project_inputs(x, into, bias).unbind(1):
        h = torch.tanh(torch.baddbmm(projected, h, again))
        hidden.append(h)
    return (torch.stack(hidden, dim=1),)


def _project_inputs(x: Tensor, into: Tensor, bias: Tensor) -> Tensor:
    """The input's part of every gate, (B, T, n, gates * W): one product for all steps."""
    return torch.baddbmm(bias[:, None], x.flatten(1, 2), into).view(*x.shape[:3], into.shape[-1])


def _split_gru_biases(bias: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Those outside the reset gate, and those inside it, each (B, 3 W)."""
    return bias[:, : 3 * width], F.pad(bias[:, 3 * width :], (2 * width, 0))


def _allocate_history(first: Tensor, steps: int) -> Tensor:
    """A buffer (B, steps + 1, n, W) for a state before and after every step, so that neither needs a copy."""
    room = first.new_empty(len(first), steps + 1, *first.shape[1:])
    room[:, 0] = first
    return room


def _differentiate_by_steps(
    steps: Callable[..., tuple[Tensor, ...]], inputs: tuple[Tensor, ...], gradients: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """The gradients of `inputs`, differentiable themselves, through the recurrence as plain operations."""
    with torch.enable_grad():
        # Views: otherwise a tensor given as two inputs (such as h and c) would get the sum of both gradients twice.
        views = [x.view_as(x) for x in inputs]
        outputs = steps(*views)
        given = [pair for pair in zip(outputs, gradients, strict=True) if pair[1] is not None]
        differentiable = [x for x in views if x.requires_grad]
        grads = torch.autograd.grad([y for y, _ in given], differentiable, [d for _, d in given], create_graph=True)
    results = iter(grads)
    return tuple(next(results) if x.requires_grad else None for x in views)


def _compute_gradients(
    needs: tuple[bool, ...], before: Tensor, x: Tensor, into: Tensor, d_again: Tensor, d_into: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients of x, `into`, `again` and the input's bias from those of the gates' sums, (B, T, n, gates * W): of what
    the states `before` (B, T, n, W) add to them, and of what the input does."""
    flat = d_into.flatten(1, 2)
    return (
        torch.bmm(flat, into.transpose(1, 2)).view_as(x) if needs[0] else None,
        torch.bmm(x.flatten(1, 2).transpose(1, 2), flat) if needs[1] else None,
        torch.bmm(before.flatten(1, 2).transpose(1, 2), d_again.flatten(1, 2)) if needs[2] else None,
        flat.sum(dim=1) if needs[3] else None,
    )


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, into: Tensor, again: Tensor, bias: Tensor, h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        width = h.shape[-1]
        gates = _project_inputs(x, into, bias)
        hidden, cells = _allocate_history(h, x.shape[1]), _allocate_history(c, x.shape[1])
        squashed = torch.empty_like(hidden[:, 1:])
        candidates, others = gates[..., :width].unbind(1), gates[..., width:].unbind(1)
        inputs, forgets, outs = (part.unbind(1) for part in gates[..., width:].chunk(3, dim=-1))
        hs, cs, squash = hidden.unbind(1), cells.unbind(1), squashed.unbind(1)
        total = torch.empty_like(gates[:, 0], memory_format=torch.contiguous_format)
        sums, opened = total[..., :width], total[..., width:]
        for t, projected in enumerate(gates.unbind(1)):
            torch.baddbmm(projected, hs[t], again, out=total)
            torch.tanh(sums, out=candidates[t])
            torch.sigmoid(opened, out=others[t])
            torch.mul(forgets[t], cs[t], out=cs[t + 1]).addcmul_(inputs[t], candidates[t])
            torch.tanh(cs[t + 1], out=squash[t])
            torch.mul(outs[t], squash[t], out=hs[t + 1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, into, again, bias, h, c, hidden, cells, gates, squashed)
        return hidden[:, 1:], cells[:, 1:]

    @staticmethod
    def backward(ctx: Any, d_hidden: Tensor | None, d_cells: Tensor | None) -> Any:
        *inputs, hidden, cells, gates, squashed = ctx.saved_tensors
        if d_hidden is None and d_cells is None:
            return (None,) * 6
        if torch.is_grad_enabled():
            return _differentiate_by_steps(lstm_by_steps, tuple(inputs), (d_hidden, d_cells))
        x, into, again, _, h, _ = inputs
        width, back = h.shape[-1], again.transpose(1, 2)
        g, i, f, o = gates.chunk(4, dim=-1)
        # What a gate's sum gains from its cell (the first three) or its hidden state (the last).
        d = torch.empty_like(gates)
        by_g, by_i, by_f, by_o = d.chunk(4, dim=-1)
        _tanh_backward(i, g, grad_input=by_g)
        _sigmoid_backward(g, i, grad_input=by_i)
        _sigmoid_backward(cells[:, :-1], f, grad_input=by_f)
        _sigmoid_backward(squashed, o, grad_input=by_o)
        through = torch.ops.aten.tanh_backward(o, squashed).unbind(1)
        by_cell = d[..., : 3 * width].view(*d.shape[:3], 3, width).unbind(1)
        by_hidden, sums, forgets = by_o.unbind(1), d.unbind(1), f.unbind(1)
        given = torch.zeros_like(hidden[:, 1:]).unbind(1) if d_hidden is None else d_hidden.unbind(1)
        dh, dc = given[-1], torch.zeros_like(h)
        for t in reversed(range(x.shape[1])):
            if d_cells is not None:
                dc = dc + d_cells[:, t]
            dc = torch.addcmul(dc, dh, through[t])
            by_cell[t].mul_(dc[:, :, None])
            by_hidden[t].mul_(dh)
            dc = dc.mul_(forgets[t])
            dh = torch.baddbmm(given[t - 1], sums[t], back) if t else torch.bmm(sums[t], back)
        return *_compute_gradients(ctx.needs_input_grad, hidden[:, :-1], x, into, d, d), dh, dc


class _GRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, into: Tensor, again: Tensor, bias: Tensor, h: Tensor) -> Tensor:
        width = h.shape[-1]
        outer, inner = _split_gru_biases(bias, width)
        gates = _project_inputs(x, into, outer)
        hidden = _allocate_history(h, x.shape[1])
        inside = torch.empty_like(hidden[:, 1:])
        switches, candidates = gates[..., : 2 * width].unbind(1), gates[..., 2 * width :].unbind(1)
        resets, updates = (part.unbind(1) for part in gates[..., : 2 * width].chunk(2, dim=-1))
        hs, insides = hidden.unbind(1), inside.unbind(1)
        for t in range(x.shape[1]):
            total = torch.baddbmm(inner[:, None], hs[t], again)
            insides[t].copy_(total[..., 2 * width :])
            switches[t].add_(total[..., : 2 * width]).sigmoid_()
            candidates[t].addcmul_(resets[t], insides[t]).tanh_()
            torch.lerp(candidates[t], hs[t], updates[t], out=hs[t + 1])
        ctx.save_for_backward(x, into, again, bias, h, hidden, gates, inside)
        return hidden[:, 1:]

    @staticmethod
    def backward(ctx: Any, d_hidden: Tensor) -> Any:
        *inputs, hidden, gates, inside = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiate_by_steps(gru_by_steps, tuple(inputs), (d_hidden,))
        x, into, again, _, h = inputs
        width, back = h.shape[-1], again.transpose(1, 2)
        r, z, n = gates.chunk(3, dim=-1)
        # What a gate's sum gains from the hidden state: the candidate's as the state reaches it, and as the input does.
        outside = (1 - z) * (1 - n * n)
        d = torch.empty_like(gates)
        torch.mul(outside, r, out=d[..., 2 * width :])
        torch.mul(d[..., 2 * width :] * inside, 1 - r, out=d[..., :width])
        torch.mul((hidden[:, :-1] - n) * z, 1 - z, out=d[..., width : 2 * width])
        sums, outsides, updates = d.unbind(1), outside.unbind(1), z.unbind(1)
        by_gate = d.view(*d.shape[:3], 3, width).unbind(1)
        dh = torch.zeros_like(h)
        for t in reversed(range(x.shape[1])):
            dh = dh + d_hidden[:, t]
            by_gate[t].mul_(dh[:, :, None])
            outsides[t].mul_(dh)
            dh = torch.baddbmm(dh * updates[t], sums[t], back)
        d_into = torch.cat([d[..., : 2 * width], outside], dim=-1)
        *grads, d_outer = _compute_gradients(ctx.needs_input_grad, hidden[:, :-1], x, into, d, d_into)
        d_bias = None
        if d_outer is not None:
            d_bias = torch.cat([d_outer, d[..., 2 * width :].flatten(1, 2).sum(dim=1)], dim=-1)
        return *grads, d_bias, dh


class _Elman(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, into: Tensor, again: Tensor, bias: Tensor, h: Tensor) -> Tensor:
        hidden = _allocate_history(h, x.shape[1])
        hs = hidden.unbind(1)
        for t, projected in enumerate(_project_inputs(x, into, bias).unbind(1)):
            torch.tanh(torch.baddbmm(projected, hs[t], again), out=hs[t + 1])
        ctx.save_for_backward(x, into, again, bias, h, hidden)
        return hidden[:, 1:]

    @staticmethod
    def backward(ctx: Any, d_hidden: Tensor) -> Any:
        *inputs, hidden = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiate_by_steps(elman_by_steps, tuple(inputs), (d_hidden,))
        x, into, again, _, _ = inputs
        d = 1 - hidden[:, 1:] * hidden[:, 1:]
        sums, given, back = d.unbind(1), d_hidden.unbind(1), again.transpose(1, 2)
        dh = given[-1]
        for t in reversed(range(x.shape[1])):
            sums[t].mul_(dh)
            dh = torch.baddbmm(given[t - 1], sums[t], back) if t else torch.bmm(sums[t], back)
        return *_compute_gradients(ctx.needs_input_grad, hidden[:, :-1], x, into, d, d), dh
