"""The README of an exported folder."""

from __future__ import annotations

from ._sheets import ExportedBenchmark, Sheet

_TEXT = """\
# {title}

The benchmark {benchmark} of Farshift, written for {tool}.
Every row that a run must predict is here once, with its whole prompt, {shots} examples in it; the runner
adds none.

**This folder holds the true labels.** Do not train on it, and do not publish it where a crawler finds it.
{canary}

| task | rows | what they are |
|---|---|---|
{sheets}

Farshift must be installed beside {tool}: answers are read and graded by Farshift's own extraction
({extraction}) and metric ({metric}), so that both give the same score. In this folder:

    {run}

Then make a run of the logs, to score, compare and submit:

    {read}

All tasks together make a run, the ones that no score is taken of included: they are what selection rules read.

- benchmark: `{benchmark}`
- entry identity: `{identity}`
- prompt: `{prompt}`
"""


def write_readme(exported: ExportedBenchmark, tool: str, run: str, read: str) -> bytes:
    """Return the README: the content of the folder and how to use it.

    tool: the runner's name. run, read: the commands that run the model and import the logs, for use in the folder.
    """
    grader = exported.grader
    pin = grader.prompt.pin
    sheets = [
        f"| `{task}` | {len(sheet.samples)} | {_describe_sheet(sheet)} |"
        for task, sheet in zip(exported.tasks, exported.sheets, strict=True)
    ]
    return _TEXT.format(
        title=exported.title,
        benchmark=grader.benchmark,
        canary=exported.canary,
        tool=tool,
        shots=pin.k,
        sheets="\n".join(sheets),
        extraction=f"{pin.extraction.name}@{pin.extraction.version}",
        metric=grader.metric.signature,
        run=run,
        read=read,
        identity=grader.entry_identity,
        prompt=grader.prompt.signature,
    ).encode()


def _describe_sheet(sheet: Sheet) -> str:
    if sheet.scored:
        return f"the view {sheet.name}; their mean is its score"
    return f"rows of the part {sheet.name} that are on no view"
