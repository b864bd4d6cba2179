"""`farshift compare --statistic detectable`, as it is typed."""

from __future__ import annotations

import json

from support import one_line_error


def detect(command, *arguments):
    return command("compare", "--statistic", "detectable", *arguments)


def test_it_tells_how_small_a_difference_shows_and_what_it_assumes(command):
    done = detect(command, "--on", "modadd97/xi35", "--assumed")
    assert done.returncode == 0, done.stderr
    assert "modadd97/xi35 (accuracy)" in done.stdout
    assert "a two-sided 5% test" in done.stdout
    result = json.loads(detect(command, "--on", "modadd97/xi35", "--assumed", "--json").stdout)
    assert f"{result['ood']['value']:.4f}" in done.stdout
    assert result["ood"]["pairs"] == 0


def test_what_is_not_there_is_one_line(command):
    assert "no benchmark named 'modadd'" in one_line_error(detect(command, "--on", "modadd", "--assumed"))
    assert "one run is not enough" in one_line_error(
        detect(command, "--on", "xor_clusters/eta10", "baseline:mlp@xor_clusters/eta10")
    )
