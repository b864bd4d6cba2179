"""The pages in a real browser: they fit, they can be read and worked by keyboard, and the view is in the address."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from browsing import overflow, serious, visit
from farshift.leaderboard.publish.site import Site
from made_board import large_board


def _models(page) -> list[str]:
    return page.locator("table.home tbody tr:visible th a").all_inner_texts()


def test_the_table_is_filtered_and_searched_and_the_view_is_in_the_address(opened):
    with opened("index.html") as page:
        assert len(_models(page)) == 6
        assert page.locator("output").inner_text() == "6 of 6 shown"
        page.fill("input[name=q]", "NORTH my")
        assert _models(page) == ["my-model"]
        assert page.url.endswith("?q=NORTH+my")
        page.reload()
        assert _models(page) == ["my-model"]
        page.click("button[type=reset]")
        assert len(_models(page)) == 6


def test_a_kind_that_is_chosen_hides_the_others(opened):
    with opened("index.html?kind=length&budget=full") as page:
        assert page.locator("table.home thead th:visible").all_inner_texts()[1:] == ["length"]
        page.select_option("select[name=kind]", "")
        assert page.locator("table.home thead th:visible").count() == 6


def test_columns_sort_both_ways_and_what_is_missing_stays_last(opened, browser, site_folder, address):
    text = (site_folder / "index.html").read_text("utf-8")
    first = text.index("<td", text.index('<table class="home'))
    last = text.index("</td>", first) + 5
    (site_folder / "missing.html").write_text(text[:first] + "<td></td>" + text[last:], "utf-8")
    try:
        with visit(browser, address, "missing.html") as page:
            lacking = _models(page)[0]
            button = page.get_by_role("button", name="domain")
            button.click()
            down = _models(page)
            assert "sort=-domain" in page.url
            assert page.locator("th[data-kind=domain]").get_attribute("aria-sort") == "descending"
            button.click()
            up = _models(page)
            assert down[-1] == up[-1] == lacking
            values = page.locator("table.home tbody td:nth-child(2) strong").all_inner_texts()
            assert values == sorted(values)
            page.reload()
            assert _models(page) == up
            page.select_option("select[name=by]", "gap")
            assert _models(page)[-1] == lacking
    finally:
        (site_folder / "missing.html").unlink()


@pytest.mark.parametrize("width", [380, 1200])
def test_a_benchmarks_table_is_all_in_sight_and_sorts_by_a_click(opened, width):
    with opened("benchmarks/scan/length.html", width) as page:
        column = page.locator("table.standings tbody tr td:nth-child(4)")
        head = page.locator("table.standings th:nth-child(4) button")
        before = column.all_inner_texts()
        head.click()
        first = [float(text.split()[0]) for text in column.all_inner_texts()]
        head.click()
        second = [float(text.split()[0]) for text in column.all_inner_texts()]
        assert first == sorted(first, reverse=True) and second == sorted(first) and len(first) == len(before)
        assert overflow(page) <= 0
        assert (
            page.locator(".scroll:has(.standings)").evaluate("scroll => scroll.scrollWidth - scroll.clientWidth") <= 0
        )


def test_the_page_works_from_a_file(browser, site_folder):
    with visit(browser, site_folder.as_uri() + "/", "index.html") as page:
        page.fill("input[name=q]", "mlp")
        assert _models(page) == ["mlp"]
        page.click("nav >> text=Benchmarks")
        page.click("text=scan/length")
        assert page.locator("h1").inner_text().startswith("scan/length")


def test_without_scripts_the_whole_table_is_there(opened):
    with opened("index.html?q=mlp", java_script_enabled=False) as page:
        assert len(_models(page)) == 6
        assert not page.locator("form.filters").is_visible()


def test_the_keyboard_reaches_the_content_and_what_is_in_focus_is_seen(opened):
    with opened("index.html") as page:
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "Skip to the content"
        assert page.locator(".skip").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        button = page.get_by_role("button", name="length")
        button.focus()
        page.keyboard.press("Enter")
        assert "sort=-length" in page.url
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def unlike(folder: Path) -> list[str]:
    """Pages of each kind: those at the top, lists and benchmarks, and of entries, models, teams and pairs the first."""
    paths = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.html"))]
    lists = [path for path in paths if "/" not in path or path.startswith("benchmarks/") or path.endswith("index.html")]
    kinds = ("entries/", "models/", "teams/", r"compare/[0-9a-f]{16}-", r"compare/[a-z]+-")
    return sorted({*lists, *(next(path for path in paths if re.match(kind, path)) for kind in kinds)})


def test_a_page_of_each_kind_fits_a_small_screen_and_axe_finds_nothing_serious_on_three(opened, site_folder):
    for path in unlike(site_folder):
        with opened(path, width=360, scheme="dark") as page:
            assert overflow(page) <= 0, path
            if path.startswith(("index", "entries/", "benchmarks/scan/length")):
                assert serious(page) == [], path


@pytest.mark.slow
def test_each_kind_of_page_fits_every_width_and_axe_finds_nothing_serious_in_both_schemes(opened, site_folder):
    for path in unlike(site_folder):
        with opened(path, width=360, reduced_motion="reduce") as page:
            for width in (360, 800, 1600):
                page.set_viewport_size({"width": width, "height": 900})
                assert overflow(page) <= 0, (path, width)
            page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
            for width, schemes in ((1600, ("light", "dark")), (800, ()), (360, ("dark",))):
                page.set_viewport_size({"width": width, "height": 900})
                assert overflow(page) <= 0, (path, width, "with everything open")
                for scheme in schemes:
                    page.emulate_media(color_scheme=scheme)
                    assert serious(page) == [], (path, width, scheme)


@pytest.mark.slow
def test_a_thousand_models_on_forty_benchmarks_fit_into_300_kilobytes():
    content = Site(large_board(1000, 40)).pages["index.html"].render()
    assert content.count(b"<tr data-") == 1000
    assert len(gzip.compress(content, 6)) <= 300_000
