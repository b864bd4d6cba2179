"""The generated sources of label noise: modular multiplication and XOR clusters."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.acquire.source import find_source
from farshift.loaders.generators import modular_multiplication, xor_clusters
from sklearn.linear_model import LogisticRegression

SETTINGS = {"seed": "test", "count": 3000, "dimension": 200, "shift": 0.5}


def test_products_are_products_over_all_pairs():
    table = modular_multiplication.rows(modulus=97)
    result = {(a, b): c for a, b, c in zip(*(table[name].to_pylist() for name in ("a", "b", "product")), strict=True)}
    assert result == {(a, b): a * b % 97 for a in range(97) for b in range(97)}


def test_every_residue_but_nought_is_the_product_of_96_pairs():
    products = find_source("modmul97").table()["product"].to_numpy()
    assert np.bincount(products, minlength=97).tolist() == [193] + [96] * 96


def clusters():
    table = xor_clusters.rows(**SETTINGS)
    x = table["x"].combine_chunks().flatten().to_numpy().reshape(SETTINGS["count"], -1)
    return x, table["side"].to_numpy(), np.array(table["cluster"].to_pylist())


def test_each_cluster_has_its_mean_and_unit_variance():
    x, _, cluster = clusters()
    alternating = np.where(np.arange(200) % 2, -0.5, 0.5)
    means = {"+mu1": np.full(200, 0.5), "-mu1": np.full(200, -0.5), "+mu2": alternating, "-mu2": -alternating}
    assert means["+mu1"] @ means["+mu2"] == 0
    for name, mean in means.items():
        rows = x[cluster == name]
        assert abs(len(rows) - 750) < 100
        assert np.abs(rows.mean(axis=0) - mean).max() < 5 / np.sqrt(len(rows))
        assert abs((rows - mean).std() - 1) < 0.01


def test_opposite_clusters_are_of_one_class():
    _, side, cluster = clusters()
    assert {(str(name), int(value)) for name, value in zip(cluster, side, strict=True)} == {
        ("+mu1", 1),
        ("-mu1", 1),
        ("+mu2", 0),
        ("-mu2", 0),
    }


def test_no_linear_rule_tells_the_classes_and_the_means_do():
    x, side, _ = clusters()
    linear = LogisticRegression(max_iter=300).fit(x[:1000], side[:1000])
    assert abs(linear.score(x[1000:], side[1000:]) - 0.5) < 0.05
    to_first, to_second = x.sum(axis=1), x[:, ::2].sum(axis=1) - x[:, 1::2].sum(axis=1)
    assert ((np.abs(to_first) > np.abs(to_second)) == side).mean() > 0.999


def test_a_longer_source_begins_with_the_same_rows():
    longer = xor_clusters.rows(**SETTINGS | {"count": 3100})
    assert longer.slice(0, 3000).equals(xor_clusters.rows(**SETTINGS))


@pytest.mark.parametrize(
    "change", [{"dimension": 201}, {"dimension": 0}, {"shift": 0.1}, {"shift": 0.0}, {"shift": 20.0}]
)
def test_means_that_are_not_exact_or_not_orthogonal_are_refused(change):
    with pytest.raises(BadDefinition, match="xor_clusters: dimension = "):
        xor_clusters.rows(**SETTINGS | change)
