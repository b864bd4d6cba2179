"""The process that scores submissions for a worker, with the function of the command line,
`operations.submit.submit_runs`.

    python -P -m farshift.leaderboard.server.intake.scoring BOARD MEMORY     (one request per line on stdin)

It has the board's key and a memory limit, and ends with the worker that started it. A child process without the key
decodes the submission.
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
    """Score a submission. Returns its `entries`, why it is `refused`, or why this attempt `broke`."""

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
        return {"broke": "it needs more memory than this board allows for a submission"}
    except Exception as error:
        # The message may reveal details of this machine: it goes to the log, and the submitter sees only its type.
        log.exception("%s could not be scored", Path(request["file"]).name[:12])
        return {"broke": f"an internal error of Farshift ({type(error).__name__}): see the server's log"}
    return {"entries": entries}


def _format_error(error: FarshiftError, request: dict[str, Any]) -> str:
    """Return an error's message without the path of the file on this machine."""
    path = request["file"]
    return str(error).replace(path, "the submission").replace(Path(path).name, "the submission")


def main() -> None:
    board, memory = Path(sys.argv[1]), int(sys.argv[2])
    _limit_memory(memory)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # other output must not be read as a response
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            requests.put(json.loads(line))
        os._exit(0)  # the worker has ended, possibly during a submission: another worker resumes it

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
    with suppress(OSError, ValueError):  # not every system has this limit
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def _set_alarm(seconds: float) -> None:
    """Set a limit at which the system kills this process, some time after its worker should have."""
    import signal

    signal.alarm(ceil(seconds) + 30)


if __name__ == "__main__":
    main()
