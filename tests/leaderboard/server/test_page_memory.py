"""A server keeps so many bytes of pages, those that were asked for last."""

from __future__ import annotations

from farshift.leaderboard.server.answers import Stored
from farshift.leaderboard.server.page_memory import PageMemory


def page(text: str):
    return Stored(text.encode(), "text/html").packed()


def test_pages_that_nobody_asked_for_make_room():
    first, second, third = (page(f"page {number}") for number in range(3))
    memory = PageMemory(first.held + second.held)
    memory.put("first", first)
    memory.put("second", second)
    assert memory.get("first") is first
    memory.put("third", third)
    assert [path for path, _ in memory.items()] == ["first", "third"]
    assert memory.get("second") is None


def test_a_page_that_is_put_again_is_there_once_and_one_that_is_too_large_is_there_alone():
    small, large = page("small"), page("".join(map(str, range(1000))))
    memory = PageMemory(2 * small.held)
    for _ in range(5):
        memory.put("a", small)
    memory.put("b", small)
    assert [path for path, _ in memory.items()] == ["a", "b"]
    memory.put("c", large)
    assert [path for path, _ in memory.items()] == ["c"]
