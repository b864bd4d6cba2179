"""The pages of published claims: each with its numbers, its interval and its verdict; the same on every board."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from html import unescape

import pytest
from farshift.benchmarks.claims.claim import CLAIMS_FOLDER
from farshift.benchmarks.claims.listing import NOT_RUN, list_shipped_claims
from farshift.core.plugins import PACKAGE
from farshift.leaderboard.publish import claims as page_module
from farshift.leaderboard.publish.site import Site
from made_tables import entry, snapshot
from page_reader import Read


@pytest.fixture(scope="module")
def site():
    return Site(snapshot([entry("some model", 0.5)]))


@pytest.fixture(scope="module")
def text(site):
    return site.pages["claims.html"].render().decode()


def read_claim_page(site, name: str) -> str:
    """The words of a claim's page."""
    return Read(site.pages[f"claims/{name}.html"].render()).text


def test_every_claim_of_the_package_has_a_row_with_an_anchor_and_a_page(site, text):
    names = [path.stem for path in (PACKAGE / CLAIMS_FOLDER).glob("*.toml")]
    assert len(names) >= 30
    for name in names:
        assert text.count(f'id="{name}"') == 1 and text.count(f'href="claims/{name}.html"') == 1
        assert f"farshift reproduce {name}" in read_claim_page(site, name)


def test_verdicts_are_counted_and_explained(text):
    counts = Counter(item.verdict for item in list_shipped_claims())
    facts = unescape(text[text.index('<dl class="facts verdicts">') : text.index("</dl>")])
    for verdict, count in counts.items():
        assert f"<strong>{count}</strong> {page_module.MEANS[verdict]}" in facts
    assert set(counts) <= set(page_module.MEANS)


def test_a_claim_shows_the_paper_its_number_ours_with_what_its_interval_is_over_and_the_rule(site):
    output = read_claim_page(site, "co-teaching-beats-cross-entropy")
    assert "Han et al., NeurIPS 2018" in output and "arXiv:1804.06872" in output
    assert "CIFAR-10N worst labels: 83.83 against 77.69 of cross-entropy (noisylabels.com; from memory)" in output
    assert re.search(
        r"gain method minus cross_entropy 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\] 95 % .* over paired test rows", output
    )
    assert "gain > 0 : it is 0.120" in output and "farshift reproduce co-teaching-beats-cross-entropy" in output


def test_what_was_not_run_says_what_it_takes(site):
    for item in list_shipped_claims():
        if item.verdict == NOT_RUN:
            assert f"{item.claim.cost.cpu_minutes:g} min" in read_claim_page(site, item.claim.name)


def test_claims_of_a_user_are_not_on_a_boards_pages(site, text, tmp_path, monkeypatch):
    there = tmp_path / CLAIMS_FOLDER
    there.mkdir(parents=True)
    (there / "my-claim.toml").write_text(
        (PACKAGE / CLAIMS_FOLDER / "scan-length-cut.toml").read_text("utf-8").replace("scan-length-cut", "my-claim"),
        "utf-8",
    )
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    page_module._read_claims.cache_clear()
    assert site.pages["claims.html"].render().decode() == text
    assert "claims/my-claim.html" not in Site(site.snapshot).pages


def test_the_page_is_linked_from_every_page(site):
    for path in ("index.html", "about.html", "benchmarks/index.html"):
        assert 'claims.html">' in site.pages[path].render().decode()


def test_reading_claims_loads_nothing_that_trains():
    code = (
        "import sys; from farshift.benchmarks.claims.listing import list_shipped_claims; assert list_shipped_claims(); "
    )
    code += "assert 'torch' not in sys.modules and not any(m.startswith('farshift.baselines') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
