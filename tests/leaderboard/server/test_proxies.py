"""The proxies of docs/host-a-board.md in front of a real server: what they are to leave as it is, they leave."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator

import httpx2
import pytest
import tomli_w
from farshift.leaderboard.server.queue import Queue
from farshift.leaderboard.settings import read_server_settings
from proxies import FILES, NAME, PATIENCE, command, documented, environment, installed, proxy
from test_serve_command import Served

MOST = 4 << 20
SPOOFED = "203.0.113.7"


def _there(name: str) -> str:
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    return name


@pytest.mark.parametrize("name", list(FILES))
def test_the_documented_file_is_one_that_the_proxy_takes(name, tmp_path):
    file = FILES[_there(name)](tmp_path)
    done = subprocess.run(command(name, file, check=True), capture_output=True, text=True, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    warned = [line for line in done.stderr.splitlines() if "[warn]" in line and "http2" not in line]
    assert warned == []


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_the_documented_unit_is_one_that_systemd_takes(tmp_path):
    unit = tmp_path / "farshift-board.service"
    unit.write_text(documented(unit.name).replace("/srv/board/venv/bin/farshift", shutil.which("true") or "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines() if unit.name in line and "User" not in line] == []


@pytest.fixture(params=list(FILES))
def name(request) -> str:
    return _there(request.param)


@pytest.fixture
def served(own, tmp_path) -> Iterator[Served]:
    output = {"open": True, "submission_bytes": MOST, "queued_at_once": 100}
    (own.path / "settings.toml").write_text(tomli_w.dumps({"server": output}))
    result = Served(own.path, tmp_path / "log", "--workers", "0", "--proxy-headers")
    yield result
    result.end()


class Line:
    """TLS to the proxy, from an address of this machine."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        context = ssl._create_unverified_context()
        context.set_alpn_protocols(["http/1.1"])
        plain = socket.create_connection(("127.0.0.1", port), PATIENCE, (address, 0))
        self.line = context.wrap_socket(plain, server_hostname=NAME)

    def send(self, start: str, content: bytes, headers: dict[str, str]) -> None:
        output = "".join(f"{name}: {value}\r\n" for name, value in {"Host": NAME, **headers}.items())
        self.line.sendall(f"{start} HTTP/1.1\r\n{output}\r\n".encode() + content)


@pytest.mark.slow
def test_a_board_behind_a_proxy_is_as_without_one(name, served, own, tmp_path):
    direct = served.get("")
    port = int(served.url.rpartition(":")[2])
    content = os.urandom(MOST - 1)
    with proxy(name, tmp_path / "proxy", port) as (https, http):
        transport = httpx2.HTTPTransport(verify=False, local_address="127.0.0.2")
        with httpx2.Client(transport=transport, base_url=f"https://127.0.0.1:{https}", timeout=PATIENCE) as client:

            def ask(method: str, path: str, body: bytes = b"", **headers: str) -> httpx2.Response:
                output = {key.replace("_", "-"): value for key, value in headers.items()}
                output |= {"Host": NAME, "X-Forwarded-For": SPOOFED}
                tls = {"sni_hostname": NAME}
                return client.request(method, path, content=body, headers=output, extensions=tls)

            page = ask("GET", "/", Accept_Encoding="gzip")
            assert (page.status_code, page.headers["Content-Encoding"]) == (200, "gzip")
            assert page.headers["Strict-Transport-Security"] == "max-age=31536000"
            assert page.headers["Content-Security-Policy"] == direct.headers["Content-Security-Policy"]
            plain = ask("GET", "/", Accept_Encoding="identity")
            assert plain.content == direct.content
            assert plain.headers["ETag"].startswith('"'), "a strong tag"
            again = ask("GET", "/", Accept_Encoding="gzip", If_None_Match=page.headers["ETag"])
            assert (again.status_code, again.content) == (304, b"")
            stored = own.standings()[0].submission
            some = ask("GET", f"/submissions/{stored}.zip", Range="bytes=0-9")
            assert (some.status_code, len(some.content)) == (206, 10)
            redirected = httpx2.get(f"http://127.0.0.1:{http}/x?y", headers={"Host": NAME}, timeout=PATIENCE)
            assert (redirected.status_code in (301, 308), redirected.headers["Location"]) == (
                True,
                f"https://{NAME}/x?y",
            )

            large = ask("POST", "/api/v1/submissions", b"x" * (MOST + 1), Content_Type="application/zip")
            assert (large.status_code, large.json()["error"].split(":")[0]) == (413, f"{MOST + 1} bytes")

            # A line that breaks leaves nothing, and the same file sent again is one submission.
            cut, zipped = Line(https, "127.0.0.2"), {"Content-Type": "application/zip"}
            cut.send("POST /api/v1/submissions", content[: MOST // 2], {**zipped, "Content-Length": str(len(content))})
            cut.line.close()
            done, again = (ask("POST", "/api/v1/submissions", content, Content_Type="application/zip") for _ in "12")
            assert (done.status_code, again.status_code) == (202, 200), done.text
            assert again.json()["id"] == done.json()["id"]
            job = Queue(own.ledger.store, read_server_settings(own.path)).find(done.json()["id"])
            assert (job.size, job.owner) == (len(content), "address 127.0.0.2"), "who sends is told by the proxy alone"
    assert SPOOFED not in served.log.read_text()
