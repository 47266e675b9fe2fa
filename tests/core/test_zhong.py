"""Zhong's published re-ranking is one combination of our options, up to ties."""

import numpy as np
import pytest
from core.episodes import make_episode
from oracles import zhong
from oracles.rdc import normalise

import rdc_jax


@pytest.mark.parametrize("kind", ["random", "clustered", "relu"])
@pytest.mark.parametrize(("k", "k2", "lam"), [(6, 3, 0.3), (20, 6, 0.3), (5, 1, 0.7)])
def test_options_give_zhongs_re_ranking(kind, k, k2, lam):
    support, _, query = make_episode(kind, shot=3, query=6)
    x = np.concatenate([support, query])
    params = rdc_jax.RDCParams(
        k=k, k2=k2, lam=lam, distance="squared_max", overlap=">", subspace="none"
    )
    got = rdc_jax.calibrated_distances(x, params)
    np.testing.assert_allclose(got, zhong.rerank(normalise(x), k, k2, lam), atol=1e-6)
