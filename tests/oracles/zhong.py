"""The re-ranking of Zhong et al. (2017), from its description, in float64 NumPy."""

import numpy as np


def rerank(features, k1, k2, lambda_value):
    """Re-ranked distances among all rows of l2-normalised features."""
    n = len(features)
    squared = ((features[:, None] - features[None]) ** 2).sum(-1)
    # Each column by its maximum, then transposed: rows are normalised.
    original = (squared / squared.max(axis=0)).T
    for_ranks = original.copy()
    np.fill_diagonal(for_ranks, -1.0)  # the probe leads its own list
    order = np.argsort(for_ranks, axis=1, kind="stable")

    def mutual(i, count):
        forward = order[i, :count]
        return forward[[i in order[j, :count] for j in forward]]

    v = np.zeros((n, n))
    for i in range(n):
        neighbours = mutual(i, k1 + 1)
        expansion = neighbours
        for candidate in neighbours:
            inner = mutual(candidate, int(np.around(k1 / 2)) + 1)
            if len(np.intersect1d(inner, neighbours)) > 2 / 3 * len(inner):
                expansion = np.append(expansion, inner)
        expansion = np.unique(expansion)
        weight = np.exp(-original[i, expansion])
        v[i, expansion] = weight / weight.sum()
    if k2 != 1:
        v = np.stack([v[order[i, :k2]].mean(axis=0) for i in range(n)])
    jaccard = np.zeros((n, n))
    for i in range(n):
        shared = np.minimum(v[i], v).sum(axis=1)
        jaccard[i] = 1 - shared / (2 - shared)
    return (1 - lambda_value) * jaccard + lambda_value * original
