"""Feature matrices that tests use: ordinary, clustered, and degenerate ones."""

import numpy as np

KINDS = ("random", "clustered", "duplicated", "equal", "zeros", "relu")


def make_episode(kind="clustered", *, way=5, shot=1, query=3, d=24, seed=0):
    """(support [s, d], labels [s], query [q, d]) in float32, class-major."""
    rng = np.random.default_rng(seed)
    per_class = shot + query
    x = rng.standard_normal((way, per_class, d))
    if kind == "clustered":
        x = 0.05 * x + rng.standard_normal((way, 1, d))
    elif kind == "duplicated":
        x[:, 1] = x[:, 0]  # within a class
        x[1, 2] = x[0, 2]  # and across classes
    elif kind == "equal":
        x[:] = x[0, 0]
    elif kind == "zeros":
        x[:, -1] = 0
        x[0, 0] = 0
    elif kind == "relu":
        x = np.maximum(x + rng.standard_normal((way, 1, d)), 0)
    x = x.astype(np.float32)
    labels = np.repeat(np.arange(way), shot).astype(np.int32)
    return x[:, :shot].reshape(-1, d), labels, x[:, shot:].reshape(-1, d)
