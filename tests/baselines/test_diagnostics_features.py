"""What is measured of trained replicas' features and weights, against closed forms, SciPy and scikit-learn."""

import math

import numpy as np
import pytest
import torch
from farshift.baselines.algorithms.ipr_pruning import compute_participation_ratio
from farshift.baselines.diagnostics import (
    NotApplicable,
    anchors,
    class_manifolds,
    dimension,
    factorisation,
    information,
    norms,
    orthogonality,
    weight_participation,
)
from farshift.baselines.diagnostics._subject import Subject
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.replicas.rng import make_keys
from scipy.integrate import dblquad
from scipy.optimize import minimize
from sklearn.linear_model import LinearRegression, LogisticRegression

from .trained_replicas import NAMES, mlp, numbers, plain, stack, texts


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_features_are_what_the_head_reads():
    subject = mlp(numbers())
    for replica in range(3):
        hidden = plain(subject, replica)[:2](subject.data.inputs[1])
        torch.testing.assert_close(subject.features[replica], hidden.detach(), rtol=1e-12, atol=1e-12)


def test_features_of_a_text_are_means_over_its_tokens_whatever_it_is_padded_to():
    data = texts()
    built = stack("lstm", data, Sizes(8, source=8), width=6)
    result = Subject(built, data, "sequence").features
    for row in range(len(data)):
        real = int(data.lengths[row])
        states = built.network.features(
            data.inputs[0][row].expand(3, 1, -1), data.inputs[1][row, :real].expand(3, 1, real)
        )
        torch.testing.assert_close(result[:, row], states[:, 0].mean(1).detach(), rtol=1e-10, atol=1e-12)


def test_the_participation_ratio_of_a_gaussian_is_its_dimension_where_variances_are_equal():
    orthogonal = torch.linalg.qr(normal(10, 10)).Q
    equal = normal(4000, 6) @ orthogonal[:6]
    uneven = equal.new_tensor([3.0, 1.0, 1.0, 0, 0, 0]).sqrt() * normal(4000, 6, seed=1) @ orthogonal[:6]
    result = dimension.participation_ratio(torch.stack([equal, uneven @ torch.eye(10, dtype=torch.float64)]))
    assert result.tolist() == pytest.approx([6.0, 25 / 11], rel=0.02)


def test_the_participation_ratio_is_that_of_the_covariance_s_eigenvalues():
    for rows, width in ((30, 5), (5, 30)):
        features = normal(2, rows, width)
        for own, result in zip(features, dimension.participation_ratio(features), strict=True):
            spectrum = np.linalg.eigvalsh(np.cov(own.numpy().T))
            assert result.item() == pytest.approx(spectrum.sum() ** 2 / (spectrum**2).sum(), rel=1e-10)


def test_two_nearest_neighbours_see_the_dimension_of_a_curved_sheet():
    angle = 2 * math.pi * torch.rand(3000, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    ring = torch.stack([angle.cos(), angle.sin(), torch.zeros_like(angle)], dim=1)
    assert dimension.two_nn(ring).item() == pytest.approx(1.0, rel=0.06)
    assert dimension.two_nn(normal(3000, 3)).item() == pytest.approx(3.0, rel=0.08)
    assert math.isnan(dimension.two_nn(torch.zeros(9, 3)))


def test_rows_that_coincide_are_one_row_to_two_nearest_neighbours():
    rows = normal(40, 3)
    assert dimension.two_nn(rows.repeat(2, 1)).item() == pytest.approx(dimension.two_nn(rows).item(), rel=1e-12)


LOOSE = {"epsabs": 1e-6, "epsrel": 1e-6}


@pytest.mark.parametrize(("radius", "size"), [(0.3, 5.0), (2.0, 12.5), (1.0, 0.4)])
def test_the_capacity_of_balls_is_the_integral_of_the_replica_formula(radius, size):
    scale = math.lgamma(size / 2) + (size / 2 - 1) * math.log(2) + math.log(2 * math.pi) / 2

    def density(z, t):
        """Of a normal number and a chi-distributed one."""
        return math.exp((size - 1) * math.log(t) - (t**2 + z**2) / 2 - scale)

    def touching(z, t):
        return density(z, t) * (t * radius - z) ** 2 / (1 + radius**2)

    def inside(z, t):
        return density(z, t) * (z**2 + t**2)

    most = math.sqrt(size) + 9
    inverse = dblquad(touching, 1e-12, most, lambda t: max(-t / radius, -12), lambda t: min(t * radius, 12), **LOOSE)[0]
    inverse += dblquad(inside, 1e-12, most, lambda t: -12 - t / radius, lambda t: -t / radius, **LOOSE)[0]
    assert class_manifolds.compute_capacity(radius, size) == pytest.approx(1 / inverse, rel=1e-4)


def test_the_capacity_falls_from_points_to_large_balls():
    assert class_manifolds.compute_capacity(0.0, 5.0) == 2.0
    assert class_manifolds.compute_capacity(1e-4, 5.0) == pytest.approx(2.0, rel=1e-2)
    assert class_manifolds.compute_capacity(1e3, 50.0) == pytest.approx(1 / 50, rel=0.01)


def test_radius_and_dimension_are_means_over_the_farthest_points_in_random_directions():
    """By brute force, with directions in the whole space projected on the span of the points."""
    points = normal(1, 5, 8) + 2
    drawn = normal(20_000, 8, seed=3)
    centre = points[0].mean(0)
    spread = (points[0] - centre) / centre.norm()
    basis = torch.linalg.svd(spread, full_matrices=False).Vh[:4]
    farthest = spread[((drawn @ basis.T @ basis) @ spread.T).argmax(1)]
    along = ((drawn @ basis.T @ basis) * farthest).sum(1) / farthest.norm(dim=1)
    radius, size = class_manifolds.compute_geometry(points, normal(1, 20_000, 4, seed=4))
    assert radius.item() == pytest.approx(farthest.square().sum(1).mean().sqrt().item(), rel=0.02)
    assert size.item() == pytest.approx(along.square().mean().item(), rel=0.03)


def test_a_class_whose_rows_lie_on_a_line_has_one_dimension():
    line = torch.tensor([[-1.0, 0, 0], [1, 0, 0]], dtype=torch.float64) + torch.tensor([0.0, 0, 4])
    radius, size = class_manifolds.compute_geometry(line[None], normal(1, 50_000, 1))
    assert radius.item() == pytest.approx(1 / 4)
    assert size.item() == pytest.approx(1.0, rel=0.03)


def test_tighter_classes_have_more_capacity():
    data = numbers(rows=60)
    label = data.target[0]
    subject = mlp(data)
    centres = 3 * normal(3, 4)
    result = []
    for spread in (0.1, 1.0):
        subject.features = (centres[label] + spread * normal(60, 4, seed=5)).expand(3, -1, -1)
        result.append(class_manifolds.measure(subject))
    assert (result[0]["capacity"] > result[1]["capacity"]).all()
    assert (result[0]["radius"] < result[1]["radius"]).all()


def test_features_that_are_a_sum_over_factors_factorise_wholly_and_products_do_not():
    a, b = torch.arange(6).repeat_interleave(6), torch.arange(6).repeat(6)
    factors = factorisation._encode_one_hot(a, b)
    sums = normal(6, 7)[a] + normal(6, 7, seed=1)[b]
    products = torch.nn.functional.one_hot((a + b) % 6).double()
    result = factorisation.compute_explained_variance(torch.stack([sums, products[:, :5] @ normal(5, 7)]), factors)
    assert result["r2"].tolist() == pytest.approx([1.0, 0.0], abs=1e-10)


def test_the_fit_of_a_sum_over_factors_is_scikit_learn_s():
    factors, features = normal(40, 6), normal(2, 40, 3, seed=1)
    factors[:, 5] = factors[:, 4] - 2 * factors[:, 0]
    result = factorisation.compute_explained_variance(features, factors)
    for own, r2, adjusted in zip(features.numpy(), result["r2"], result["adjusted"], strict=True):
        fitted = LinearRegression().fit(factors, own).predict(factors)
        expected = 1 - ((own - fitted) ** 2).sum() / ((own - own.mean(0)) ** 2).sum()
        assert r2.item() == pytest.approx(expected, rel=1e-9)
        assert adjusted.item() == pytest.approx(1 - (1 - expected) * 39 / 34, rel=1e-9)


def test_features_that_know_nothing_of_the_factors_have_an_adjusted_fit_near_zero():
    factors = torch.nn.functional.one_hot(torch.arange(300) % 60).double()
    result = factorisation.compute_explained_variance(normal(1, 300, 50), factors)
    assert result["adjusted"].item() == pytest.approx(0.0, abs=0.02)
    assert result["r2"].item() > 0.15


def test_more_factors_than_rows_tell_nothing():
    with pytest.raises(NotApplicable, match="^10 training rows are too few for 10 vectors of factors$"):
        factorisation.compute_explained_variance(normal(1, 10, 3), torch.eye(10, dtype=torch.float64))


def test_the_factors_of_a_text_are_its_words():
    data = texts()
    counted = factorisation.make_design_matrix(
        Subject(stack("lstm", data, Sizes(8, source=8), width=6), data, "sequence")
    )
    for row, source in zip(counted.tolist(), data.inputs[0].tolist(), strict=True):
        assert row[1:] == [source.count(word) for word in range(1, len(row))]
        assert row[0] == 0


def test_the_probe_is_scikit_learn_s_logistic_regression():
    inputs, targets = normal(2, 60, 4), torch.randint(3, (2, 60), generator=torch.Generator().manual_seed(1))
    inputs = torch.nn.functional.pad(inputs / torch.linalg.matrix_norm(inputs, 2)[:, None, None] * 60**0.5, (0, 1))
    ours = information.fit_probe(inputs, targets, 3)
    for x, y, weights in zip(inputs, targets, ours, strict=True):
        theirs = LogisticRegression(C=1 / (60 * information.PENALTY), fit_intercept=False, tol=1e-10, max_iter=10_000)
        expected = theirs.fit(x.numpy(), y.numpy()).coef_.T
        np.testing.assert_allclose(weights.numpy(), expected, atol=1e-4)


def test_features_that_are_the_label_tell_all_of_it_and_noise_tells_none():
    label = torch.arange(400) % 4
    expected = torch.nn.functional.one_hot(label).double()
    features = torch.stack([50 * expected, 50 * normal(400, 4)])
    output = information.estimate_information(features, label, make_keys(["a", "b"])).tolist()
    assert output[0] == pytest.approx(math.log(4), abs=0.08)
    assert output[1] < 0.02


def test_information_is_asked_of_rows_that_the_probe_was_not_fitted_on():
    """More columns than rows: a probe fits any labels, and knows nothing of the others."""
    label = torch.randint(2, (60,), generator=torch.Generator().manual_seed(0))
    assert information.estimate_information(normal(1, 60, 200), label, make_keys(["a"])).item() < 0.1


def test_weights_of_one_component_participate_wholly_and_even_ones_by_their_number():
    weights = torch.tensor([[0.0, 3, 0, 0], [1, -1, 1, -1], [0, 0, 0, 0]], dtype=torch.float64)
    assert compute_participation_ratio(weights.square()).tolist() == [1.0, 0.25, 0.0]


def test_waves_in_the_weights_of_a_modular_network_are_one_fourier_component():
    rows = 7
    a, b = torch.arange(rows), torch.arange(rows).flip(0)
    data = numbers(rows)
    data = type(data)((torch.stack([a, b], 1), torch.zeros(rows, 0)), (a + b)[None] % 7, data.lengths, data.weight)
    built = stack("quadratic_mlp", data, Sizes(7, (7, 7)), NAMES[:2], width=5)
    with torch.no_grad():
        wave = torch.cos(2 * math.pi * torch.arange(7) * 3 / 7 + 0.4).double()
        built.network.into.weight[0] = wave.repeat(2)[:, None] * torch.arange(1, 6)
        built.network.head.weight[0] = wave[:, None].expand(7, 5)
    result = weight_participation.measure(Subject(built, data, "classification"))["fourier"]
    assert result[0].item() == pytest.approx(1.0)
    into, head = built.network.into.weight[1].detach(), built.network.head.weight[1].detach()
    each = []
    for neuron in range(5):
        for weights in (into[:7, neuron], into[7:, neuron], head[:, neuron]):
            powers = np.abs(np.fft.rfft(weights.numpy())) ** 2
            each.append((powers**2).sum() / powers.sum() ** 2)
    assert result[1].item() == pytest.approx(np.mean(each), rel=1e-10)


def crossed(*vectors, repeats=1):
    """Features (1, n, width) that are sums of a vector of each factor, for all combinations, and their design."""
    grids = torch.meshgrid(*(torch.arange(len(of)) for of in vectors), indexing="ij")
    codes = [grid.flatten().repeat(repeats) for grid in grids]
    features = sum(of[code] for of, code in zip(vectors, codes, strict=True))
    design = torch.cat([torch.nn.functional.one_hot(code, len(of)) for of, code in zip(vectors, codes, strict=True)], 1)
    return features[None], design.double(), [len(of) for of in vectors]


def test_factors_on_axes_of_their_own_are_orthogonal_and_on_one_line_are_not():
    eye = torch.eye(4, dtype=torch.float64)
    apart = crossed(torch.stack([eye[0], -2 * eye[0], 3 * eye[0]]), torch.stack([eye[1], eye[2], eye[3]]))
    line = crossed(torch.stack([eye[0], -eye[0]]), torch.stack([2 * eye[0], 5 * eye[0]]))
    at_60 = crossed(torch.stack([eye[0], -eye[0]]), torch.stack([eye[0] + 3**0.5 * eye[1], 0 * eye[0]]))
    result = [orthogonality.measure_cosine(*case).item() for case in (apart, line, at_60)]
    assert result == pytest.approx([0.0, 1.0, 0.5], abs=1e-12)


def test_orthogonality_is_that_of_the_cells_that_are_there():
    """Vectors are found although combinations are missing, and the features have noise that fits no factor."""
    first, second = normal(4, 9, seed=3), normal(3, 9, seed=4)
    features, design, sizes = crossed(first, second)
    kept = torch.tensor([row for row in range(12) if row not in (0, 5, 7)])
    centred = [of - of.mean(0) for of in (first, second)]
    cosines = torch.nn.functional.cosine_similarity(centred[0][:, None], centred[1][None], dim=2).abs().mean()
    result = orthogonality.measure_cosine(features[:, kept], design[kept], sizes)
    assert result.item() == pytest.approx(cosines.item(), rel=1e-10)
    with pytest.raises(NotApplicable, match="do not determine"):
        orthogonality.measure_cosine(features[:, :3], design[:3], sizes)


def test_random_directions_have_the_mean_absolute_cosine_of_their_width():
    features, design, sizes = crossed(normal(60, 100, seed=5), normal(60, 100, seed=6))
    expected = (2 / (math.pi * 100)) ** 0.5
    assert orthogonality.measure_cosine(features, design, sizes).item() == pytest.approx(expected, rel=0.05)


def test_the_environments_of_one_class_each_are_no_second_factor():
    data = numbers()
    data.group[:] = torch.unique(data.target[0] * 2 + torch.arange(len(data)) % 2, return_inverse=True)[1]
    subject = mlp(data)
    for diagnostic in (factorisation, orthogonality):
        with pytest.raises(NotApplicable, match="each environment has one class"):
            diagnostic.measure(subject)


def test_norms_and_margins_are_those_of_a_plain_network():
    subject = mlp(numbers())
    result = norms.measure(subject)
    for replica in range(3):
        model = plain(subject, replica)
        logits = model(subject.data.inputs[1]).detach().numpy()
        truth = subject.data.target[0].numpy()
        margins = [row[y] - max(np.delete(row, y)) for row, y in zip(logits, truth, strict=True)]
        gamma = np.quantile(margins, 0.1)
        assert result["margin"][replica].item() == pytest.approx(gamma, rel=1e-10)
        weights = [layer.weight.detach().numpy() for layer in (model[0], model[2])]
        assert result["frobenius"][replica].item() == pytest.approx(sum((w**2).sum() for w in weights), rel=1e-10)
        assert gamma < 0
        assert math.isnan(result["spectral"][replica])


def test_the_spectral_complexity_of_diagonal_layers_is_in_closed_form():
    """Layers a I of width d have the norm a and the row norms d a: (2 d^(2/3))^(3/2) = 2^(3/2) d."""
    subject = mlp(numbers(), names=NAMES[:1])
    weights = [weight for weight in subject.parameters if weight.ndim == 3]
    with torch.no_grad():
        for weight, scale in zip(weights, (2.0, 3.0), strict=True):
            weight[:] = scale * torch.eye(*weight.shape[1:], dtype=torch.float64)
        for bias in subject.parameters:
            if bias.ndim < 3:
                bias.zero_()
        subject.data.inputs[1][:, 0] = subject.data.inputs[1][:, 1:3].amax(1).relu() + 0.5
        subject.data.target[0] = 0
    result = norms.measure(subject)
    gamma = result["margin"].item()
    assert gamma == pytest.approx(2 * 3 * 0.5)
    rows = [4 * 2.0, 3 * 3.0]
    complexity = 2 * 3 * sum((row / scale) ** (2 / 3) for row, scale in zip(rows, (2.0, 3.0), strict=True)) ** 1.5
    assert result["bartlett"].item() == pytest.approx(math.log(complexity / gamma), rel=1e-12)
    assert result["spectral"].item() == pytest.approx(2 * math.log(2 * 3 / gamma), rel=1e-12)


def draw(width, clouds, draws=4000, seed=0):
    drawn = np.random.default_rng(seed)
    return drawn.normal(size=(draws, width)), drawn.choice([-1.0, 1.0], (draws, clouds))


def segments(half):
    axes = np.eye(6)
    return [np.stack([axes[2 * c] - half * axes[2 * c + 1], axes[2 * c] + half * axes[2 * c + 1]]) for c in range(3)]


def test_orthogonal_points_have_capacity_two_and_no_dimension():
    capacity, size, _, _ = anchors.compute_markers(list(np.eye(4)[:, None]), *draw(4, 4))
    assert capacity == pytest.approx(2, rel=0.06)
    assert size == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("half", [0.3, 2.0])
def test_segments_in_orthogonal_planes_have_the_closed_form_of_a_cone(half):
    """Each class is e +- half f in a plane of its own: the cone of v has the half-angle atan(1 / half)."""
    capacity, size, radius, utility = anchors.compute_markers(segments(half), *draw(6, 3))
    angle = math.atan(1 / half)
    assert 1 / capacity == pytest.approx(1.5 - 2 * angle / math.pi, rel=0.06)
    outside = (2 / math.pi) * ((math.pi - angle) / 2 + math.sin(2 * angle) / 4)
    assert size == pytest.approx(outside, rel=0.06)
    # The anchor is e + u f: u is half where t falls on a side of the cone, and its slope where v is 0.
    turn = (np.arange(20_000) + 0.5) * math.pi / 20_000
    share = np.where(turn > math.pi / 2 + angle, np.sin(turn) ** 2, half**2 / (1 + half**2)) * (turn > angle)
    shared = 2 * np.mean(np.sin(turn) ** 2 * share)
    assert radius == pytest.approx(math.sqrt(shared / (outside - shared)), rel=0.06)
    assert utility == pytest.approx(capacity * size / (1 + radius**-2))


def test_larger_segments_have_a_larger_radius_and_less_capacity():
    small, large = (anchors.compute_markers(segments(half), *draw(6, 3, 500)) for half in (0.3, 2.0))
    assert large[0] < small[0]
    assert large[2] > small[2]


def test_the_capacity_is_of_the_distance_to_the_nearest_vector_that_separates():
    points = np.random.default_rng(3).normal(size=(5, 3))
    points[:, 0] += 2
    clouds = [points[:3], points[3:]]
    directions, signs = draw(3, 2, 8, seed=4)
    distances = []
    for t, y in zip(directions, signs, strict=True):
        constraint = {"type": "ineq", "fun": lambda v, y=y: np.repeat(y, [3, 2]) * (points @ v)}
        nearest = minimize(lambda v, t=t: np.square(v - t).sum(), np.zeros(3), constraints=[constraint], method="SLSQP")
        distances.append(nearest.fun)
    assert 2 / anchors.compute_markers(clouds, directions, signs)[0] == pytest.approx(np.mean(distances), rel=1e-4)


def test_trained_replicas_have_markers():
    assert set(anchors.measure(mlp(numbers(rows=40)))) == {"capacity", "dimension", "radius", "utility"}
