"""The process that scores submissions for a worker: as a command line would, by `operations.submit.submit_runs`.

    python -P -m farshift.leaderboard.server.intake.scoring BOARD MEMORY     (a request a line on stdin)

It has the board's key, and no more memory than it is given; what decodes the submission is a process below it with none
of this. It ends with the worker that started it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import suppress
from math import ceil
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from ....core.errors import BadSubmission, FarshiftError, SubmissionRejected
from ...board import Board
from ...operations.submit import submit_runs
from ...submission.validate import Submission
from ...validation.problem import to_problem_records
from ..accounts.team_check import require_team

log = logging.getLogger("farshift.scoring")


def answer_request(board: Path, request: dict[str, Any]) -> dict[str, Any]:
    """What became of a submission: its `entries`, why it is `refused`, or how this attempt `broke`."""

    def allowed(submission: Submission) -> None:
        if request["token"]:
            require_team(submission, request["team"], request["team_key"])

    try:
        entries, _ = submit_runs(Board(board), Path(request["file"]), allowed)
    except BadSubmission as error:
        return {"refused": _format_error(error, request), "problems": to_problem_records(error)}
    except SubmissionRejected as error:
        return {"refused": _format_error(error, request), "problems": []}
    except FarshiftError as error:
        return {"broke": _format_error(error, request)}
    except MemoryError:
        return {"broke": "it needs more memory than a submission is given here"}
    except Exception as error:
        # Its message may say what is on this machine: the log has it, and whoever handed in is told its name.
        log.exception("%s could not be scored", Path(request["file"]).name[:12])
        return {"broke": f"a mistake in Farshift ({type(error).__name__}): the log of its server says more"}
    return {"entries": entries}


def _format_error(error: FarshiftError, request: dict[str, Any]) -> str:
    """What an error says, without where the file lies on this machine."""
    path = request["file"]
    return str(error).replace(path, "the submission").replace(Path(path).name, "the submission")


def main() -> None:
    board, memory = Path(sys.argv[1]), int(sys.argv[2])
    _limit_memory(memory)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed must not be taken for an answer
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            requests.put(json.loads(line))
        os._exit(0)  # the worker is gone, also in the middle of a submission: another takes it up

    Thread(target=listen, daemon=True).start()
    while True:
        request = requests.get()
        _set_alarm(request["seconds"])
        out.write(json.dumps(answer_request(board, request)) + "\n")
        out.flush()


def _limit_memory(memory: int) -> None:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    bound = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    with suppress(OSError, ValueError):  # a system that has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def _set_alarm(seconds: float) -> None:
    """The system ends this process some time after its worker should have."""
    import signal

    signal.alarm(ceil(seconds) + 30)


if __name__ == "__main__":
    main()
