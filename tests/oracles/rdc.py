"""RDC in plain float64 NumPy loops, written from the paper, one image at a time.

Slow and literal on purpose: sets are Python sets, sums are loops. Nothing here is
shared with the package.
"""

import math

import numpy as np


def normalise(x):
    out = np.zeros_like(x, dtype=np.float64)
    for i, row in enumerate(np.asarray(x, np.float64)):
        norm = math.sqrt(sum(value * value for value in row))
        if norm > 0:
            out[i] = row / norm
    return out


def distances(x, kind="euclidean"):
    n = len(x)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            squared = float(((x[i] - x[j]) ** 2).sum())
            d[i, j] = squared if kind == "squared_max" else math.sqrt(squared)
    if kind == "squared_max":
        for i in range(n):
            if d[i].max() > 0:
                d[i] /= d[i].max()
    return d


def rankings(d):
    """Columns by distance; the row itself first, ties to the lowest index."""
    return [
        sorted(range(len(d)), key=lambda j: (j != i, d[i, j], j)) for i in range(len(d))
    ]


def reciprocal(ranks, i, count):
    """Members of the first `count` ranks of i that have i in theirs."""
    return {j for j in ranks[i][:count] if i in ranks[j][:count]}


def neighbour_sets(d, k, base="reciprocal", overlap=">=", labels=None):
    ranks = rankings(d)
    half = round(k / 2) + 1
    sets = []
    for i in range(len(d)):
        start = (
            reciprocal(ranks, i, k + 1)
            if base == "reciprocal"
            else set(ranks[i][: k + 1])
        )
        grown = set(start)
        for g in start:
            candidate = reciprocal(ranks, g, half)
            shared, size = len(candidate & start), len(candidate)
            if 3 * shared > 2 * size or (overlap == ">=" and 3 * shared == 2 * size):
                grown |= candidate
        sets.append(grown)
    return sets if labels is None else use_labels(sets, labels)


def use_labels(sets, labels):
    s = len(labels)
    cleaned = [
        {j for j in sets[i] if j >= s or labels[j] == labels[i]} for i in range(s)
    ]
    united = [
        set().union(*(cleaned[t] for t in range(s) if labels[t] == labels[i]))
        for i in range(s)
    ]
    return united + sets[s:]


def encode(d, sets, normalize=True):
    v = np.zeros_like(d)
    for i, members in enumerate(sets):
        for j in members:
            v[i, j] = math.exp(-d[i, j])
        if normalize:
            v[i] /= v[i].sum()
    return v


def query_expansion(v, d, k2):
    ranks = rankings(d)
    return np.stack([np.mean(v[ranks[i][:k2]], axis=0) for i in range(len(v))])


def jaccard(v):
    n = len(v)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            least = sum(min(a, b) for a, b in zip(v[i], v[j], strict=True))
            most = sum(max(a, b) for a, b in zip(v[i], v[j], strict=True))
            out[i, j] = 1 - least / most
    return out


def calibrate(x, params, labels=None):
    """(D, D̂, R̂) of rows x, l2-normalised here."""
    d = distances(normalise(x), params.distance)
    used = labels if params.labels else None
    sets = neighbour_sets(d, params.k, params.base, params.overlap, used)
    v = query_expansion(encode(d, sets, params.normalize), d, params.k2)
    lam = float(params.lam)
    return d, lam * d + (1 - lam) * jaccard(v), sets


def tanh_subspace(x, params):
    z = np.asarray(x, np.float64) if params.kernel_input == "raw" else normalise(x)
    if params.centre:
        z = z - z.mean(axis=0)
    u, _, _ = np.linalg.svd(np.tanh(z.T @ z))
    # Row by row, so that equal rows stay equal to the last bit.
    return np.stack([[row @ column for column in u.T[: params.dim]] for row in z])


def class_distances(d_qs, labels, num_classes, linkage="mean"):
    out = np.full((len(d_qs), num_classes), np.inf)
    for i, row in enumerate(d_qs):
        for c in range(num_classes):
            mine = [row[j] for j in range(len(labels)) if labels[j] == c]
            if mine:
                out[i, c] = min(mine) if linkage == "min" else sum(mine) / len(mine)
    return out


def rdc(support, labels, query, num_classes, params, project=tanh_subspace):
    """(class distances, D̂_com, D_o, R̂) of one episode."""
    x = np.concatenate([support, query]).astype(np.float64)
    labels = [int(label) for label in labels]
    original, combined, sets = calibrate(x, params, labels)
    if params.subspace != "none":
        _, second, _ = calibrate(project(x, params), params, labels)
        combined = (combined + second) / 2
    s = len(labels)
    votes = class_distances(combined[s:, :s], labels, num_classes, params.linkage)
    member = np.zeros(original.shape, bool)
    for i, members in enumerate(sets):
        member[i, sorted(members)] = True
    return votes, combined, original, member


def npc(support, labels, query, num_classes, normalize=True):
    if normalize:
        support, query = normalise(support), normalise(query)
    out = np.full((len(query), num_classes), np.inf)
    for c in range(num_classes):
        mine = [row for row, label in zip(support, labels, strict=True) if label == c]
        if mine:
            mean = sum(mine) / len(mine)
            for i, row in enumerate(query):
                out[i, c] = math.sqrt(((row - mean) ** 2).sum())
    return out


def kl_loss(original, target, member, alpha, tau, sign=-1, include_self=False):
    n = len(original)
    total = 0.0
    for i in range(n):
        columns = [j for j in range(n) if include_self or j != i]
        weight = [1 + alpha if member[i, j] else 1.0 for j in columns]

        def soft(d, row=i, columns=columns, weight=weight):
            e = [
                math.exp(sign * w * d[row, j] / tau)
                for j, w in zip(columns, weight, strict=True)
            ]
            return [value / sum(e) for value in e]

        total += sum(
            p * math.log(p / q)
            for p, q in zip(soft(target), soft(original), strict=True)
        )
    return tau**2 * total / n


def mse_loss(original, target, member, alpha):
    n = len(original)
    total = 0.0
    for i in range(n):
        for j in range(n):
            weight = 1 + alpha if member[i, j] else 1.0
            total += (weight * (original[i, j] - target[i, j])) ** 2
    return total / (n * n)
