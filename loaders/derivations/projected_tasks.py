"""Prompts of many classification tasks made of one source of images: each projects pixels and permutes labels anew.

The tasks of Kirsch, Harrison, Sohl-Dickstein and Metz, "General-Purpose In-Context Learning by Meta-Learning
Transformers" (arXiv:2212.04458): a task multiplies inputs by a random matrix of normal numbers and permutes classes.
Only the examples in a prompt tell what a new task's labels mean: a model of few tasks may memorise them, and one of
many has to learn from examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.draws import UNIT, draw_below, draw_normal_units, draw_permutation
from ...core.errors import BadDefinition
from ...splits.schema import Schema
from ..generators._rows import make_counters
from ..readers._arrow_types import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa


def rows(
    base: pa.Table,
    schema: Schema,
    *,
    image: str,
    label: str,
    classes: int,
    of: str,
    width: int,
    pairs: int,
    regimes: list[dict[str, Any]],
    seed: str,
) -> pa.Table:
    """Return rows of some regimes, each `{ name, rows, of, first, tasks }`: `rows` prompts of the tasks numbered from
    `first`, `tasks` of them, each drawn with its images from the rows of `base` whose `of` is the regime's and whose
    `label` is below `classes`.

    Columns: `prompt` (float32, [pairs + 1, width + classes + 1]), `answer`, `task` (its number) and `regime`. A line of
    a prompt is the projected image, its label as one-hot numbers, then 1; the last is the query: the projected image,
    then 0s. No pair has the query's image. Pixels are centred by the rounded mean of all images.
    """
    import pyarrow as pa

    pixels = base[image].combine_chunks().flatten().to_numpy().reshape(len(base), -1).astype(np.int64)
    pixels = pixels - (pixels.sum(axis=0) + len(pixels) // 2) // len(pixels)
    labels, places = base[label].to_numpy(), np.array(base[of].to_pylist())
    # Matrices and pixels are whole numbers: no order of summation changes a product.
    unit = UNIT * np.sqrt(float(pixels.shape[1])) * max(1, int(np.abs(pixels).max()))
    prompts, answers, tasks, names = [], [], [], []
    for regime in regimes:
        name, count = str(regime["name"]), int(regime["rows"])
        pool = np.flatnonzero((places == regime["of"]) & (labels < classes))
        if len(pool) < 2:
            raise BadDefinition(f"projected_tasks: {name}: no two rows whose {of} is {regime['of']!r}")
        stream, counters = f"{seed}/{name}", make_counters(count)
        task = regime["first"] + draw_below(f"{stream}/tasks", counters, regime["tasks"])
        query = draw_below(f"{stream}/queries", counters, len(pool))
        steps = draw_below(f"{stream}/pairs", make_counters(count * pairs), len(pool) - 1).reshape(count, pairs)
        chosen = pool[np.concatenate([(query[:, None] + 1 + steps) % len(pool), query[:, None]], axis=1)]
        prompt = np.zeros((count, pairs + 1, width + classes + 1), np.float32)
        answer = np.zeros(count, np.int64)
        for number in np.unique(task):
            which = np.flatnonzero(task == number)
            matrix = draw_normal_units(f"{seed}/matrix/{number}", pixels.shape[1] * width).reshape(-1, width)
            meaning = draw_permutation(f"{seed}/labels/{number}", make_counters(classes))
            shown = meaning[labels[chosen[which]]]
            prompt[which, :, :width] = pixels[chosen[which]] @ matrix / unit
            prompt[which, :pairs, width:-1] = np.eye(classes)[shown[:, :pairs]]
            prompt[which, :pairs, -1] = 1
            answer[which] = shown[:, pairs]
        prompts.append(prompt)
        answers.append(answer)
        tasks.append(task)
        names += [name] * count
    return pa.table(
        {
            "prompt": to_tensor_column(np.concatenate(prompts)),
            "answer": np.concatenate(answers),
            "task": np.concatenate(tasks),
            "regime": names,
        }
    )
