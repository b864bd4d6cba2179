"""Real Hub clients in a process of their own: they read HF_ENDPOINT and their time-outs when they are imported, and keep
caches for the life of a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hub_server import REPOSITORY, Hub

_PRELUDE = f"import json, sys\nREPO = {REPOSITORY!r}\narguments = json.loads(sys.argv[1])\n"


def environment(hub: Hub, home: Path) -> dict[str, str]:
    """What sends every Hub client to the server, with caches under `home` and time-outs of a second."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    return own | {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_ETAG_TIMEOUT": "1",
        "HF_HUB_DOWNLOAD_TIMEOUT": "1",
        "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1",
        "HF_XET_CLIENT_RETRY_BASE_DELAY": "10ms",
        "NO_PROXY": "127.0.0.1",
        "TQDM_DISABLE": "1",
    }


def run(hub: Hub, home: Path, code: str, **arguments: Any) -> Any:
    """Run code that knows `REPO` and `arguments`, and calls `print(json.dumps(answer))` last; its answer."""
    command = [sys.executable, "-c", _PRELUDE + code, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(hub, home), timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
