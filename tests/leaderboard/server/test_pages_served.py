"""Pages from a real server: their bytes are those of the static site, whatever the coding."""

from __future__ import annotations

import gzip
import importlib
import sys
from threading import Event

import pytest
from farshift.core.errors import MissingExtra
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import declare_references, withdraw_entry
from farshift.leaderboard.publish.page import Page
from farshift.leaderboard.publish.site import Site
from farshift.leaderboard.server import served_board
from farshift.leaderboard.server.app import POLICY
from farshift.leaderboard.settings import write_baselines
from farshift.leaderboard.tables.snapshot import take_snapshot


@pytest.fixture(scope="module")
def static(filled) -> dict[str, bytes]:
    board = Board(filled)
    return dict(Site(take_snapshot(board), board, files="").rendered())


def test_every_page_is_that_of_the_static_site(site, static):
    for path, content in static.items():
        answer = site.get(path)
        assert (answer.status_code, answer.content) == (200, content), path
    assert site.get("").content == static["index.html"]


def test_a_page_is_sent_compressed_as_it_lies_in_memory(site, static):
    page = static["index.html"]
    tags = set()
    for coding, unpacked in (
        ("gzip", gzip.decompress),
        ("identity", bytes),
    ):
        with site.client.stream("GET", site.url + "/", headers={"Accept-Encoding": coding}) as answer:
            assert answer.headers.get("Content-Encoding", "identity") == coding
            assert unpacked(b"".join(answer.iter_raw())) == page
            assert "Accept-Encoding" in answer.headers["Vary"]
            tags.add(answer.headers["ETag"])
    assert len(tags) == 2, "each coding has an entity tag of its own"
    assert not any(tag.startswith("W/") for tag in tags)


def test_who_has_a_page_is_not_sent_it_again(site):
    first = site.get("")
    again = site.get("", headers={"If-None-Match": f'"other", {first.headers["ETag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert site.get("", headers={"If-None-Match": '"other"'}).status_code == 200
    assert "no-cache" in first.headers["Cache-Control"]


def test_a_head_request_is_answered_as_get_without_the_body(site):
    for path in ("", "static/style.css", "ledger.jsonl", "api/v1/entries", "nothing"):
        get, head = site.get(path), site.client.head(f"{site.url}/{path}")
        assert (head.status_code, head.content) == (get.status_code, b"")
        assert head.headers["Content-Length"] == get.headers["Content-Length"]
        assert head.headers.get("ETag") == get.headers.get("ETag")


def test_every_answer_tells_browsers_what_it_may_do(site):
    for path in ("", "static/style.css", "nothing", "api/v1/entries", "api/v1/nothing", "board.toml"):
        headers = site.get(path).headers
        assert headers["Content-Security-Policy"] == POLICY
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "geolocation=()" in headers["Permissions-Policy"]
        public = path.startswith(("api/", "board.toml"))
        assert headers["Cross-Origin-Resource-Policy"] == ("cross-origin" if public else "same-origin")
        assert headers.get("Access-Control-Allow-Origin") == ("*" if public else None)
        assert "Access-Control-Allow-Credentials" not in headers


@pytest.mark.parametrize(
    "path",
    ["nothing", "private/key.pem", "private/store.url", "..%2fprivate%2fkey.pem", "%2e%2e/board.toml", "entries/x.html",
     "ledger.sqlite", "incoming/x", "submissions/", "a\x00b"],
)  # fmt: skip
def test_what_is_not_there_is_a_page_that_says_so(site, path):
    answer = site.get(path.replace("\x00", "%00"))
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "There is no page at this address" in answer.text
    assert "static/style.css" in answer.text


def test_a_page_cannot_be_posted_to(site):
    answer = site.client.post(f"{site.url}/index.html", content=b"x")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert "<script>" not in answer.text


def test_a_prefix_is_cut_off_by_the_server_or_by_its_proxy(own, serve):
    served = serve(own.path, url_prefix="/shift/")
    assert served.get("shift/api/v1/healthz").json() == served.get("api/v1/healthz").json()
    assert served.get("shift/board.toml").content == served.get("board.toml").content
    moved = served.get("shift")
    assert (moved.status_code, moved.headers["Location"]) == (308, "/shift/")
    assert served.json("openapi.json")["servers"] == [{"url": "/shift"}]


def test_while_new_pages_are_computed_the_old_ones_are_served(own, serve, monkeypatch):
    served = serve(own.path)
    before = served.get("").content
    locked = Event()
    monkeypatch.setattr(served_board, "take_snapshot", lambda view: locked.wait(60) and take_snapshot(view))
    (name, *_) = [item.entry for item in own.standings()]
    withdraw_entry(own, name, "a second thought")
    (left,) = [item["left"] for item in served.json("entries")["entries"] if item["entry"] == name]
    assert left["reason"] == "a second thought", "the ledger is read as it is"
    assert served.get("").content == before
    assert served.json("readyz")["behind"] == 1
    locked.set()
    served.until(lambda: b"a second thought" in served.get("").content)
    assert served.json("readyz")["behind"] == 0


def test_tables_and_pages_are_computed_once_a_head_and_pages_beyond_the_limit_at_each_request(own, serve, monkeypatch):
    computed, rendered, real = [], [], Page.render
    monkeypatch.setattr(served_board, "take_snapshot", lambda view: computed.append(view) or take_snapshot(view))
    monkeypatch.setattr(Page, "render", lambda page: rendered.append(page.path) or real(page))
    served = serve(own.path)
    name = "benchmarks/modadd97/xi35.html"
    assert served.get(name).content == served.get(name).content
    assert [served.get("") for _ in range(2)] and served.json("standings")["head"]["seq"] == 7
    assert (len(computed), rendered.count(name), rendered.count("index.html")) == (1, 1, 1)
    monkeypatch.setattr(served_board, "PAGES", 0)
    withdraw_entry(own, own.standings()[0].entry, "a second thought")
    served.until(lambda: served.json("readyz")["behind"] == 0 and len(computed) == 2)
    assert served.get(name).content == served.get(name).content
    assert rendered.count(name) == 3


def test_settings_that_change_change_the_pages(own, serve):
    declare_references(own, [item.entry for item in own.standings()])  # else neither has the protocol's seeds
    served = serve(own.path)
    assert {table["baseline"] for table in served.json("standings")["tables"]} == {""}
    write_baselines(own.path, {"modadd97/xi35": "good"})
    served.until(lambda: any(table["baseline"] == "good" for table in served.json("standings")["tables"]))


def test_a_board_whose_tables_cannot_be_computed_says_so_and_stays_up(own, serve, monkeypatch, caplog):
    def broken(view):
        raise ValueError("a table that is none")

    monkeypatch.setattr(served_board, "take_snapshot", broken)
    served = serve(own.path)
    assert served.get("").status_code == 503
    assert "cannot be computed" in served.get("readyz").json()["error"]
    assert "ValueError: a table that is none" in caplog.text, "only the operator sees why"
    assert served.get("healthz").status_code == 200
    assert served.json("entries")["entries"]


def test_without_fastapi_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "farshift.leaderboard.server.app")
    with pytest.raises(MissingExtra, match=r"farshift\[server\]"):
        importlib.import_module("farshift.leaderboard.server.app")
