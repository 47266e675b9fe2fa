"""RDC as others would write it: NumPy, one task at a time; PyTorch, all at once.

All give the class distances of tasks ``[e, n, d]`` whose supports come first, with
k = 10, k2 = 8, p = 64 and lambda = .5, as ``rdc_jax.rdc`` does by default.
"""

import numpy as np

K, K2, DIM = 10, 8, 64


def numpy_tasks(x: np.ndarray, labels: np.ndarray, leading) -> np.ndarray:
    """One task after the other; ``leading`` gives the subspace of a kernel."""
    return np.stack([_numpy_task(task, labels, leading) for task in x])


def leading_by_svd(kernel: np.ndarray) -> np.ndarray:
    """What a user writes first."""
    return np.linalg.svd(kernel)[0][:, :DIM]


def leading_by_eigh(kernel: np.ndarray) -> np.ndarray:
    """What a user writes who sees that the kernel is symmetric."""
    value, vector = np.linalg.eigh(kernel)
    return vector[:, np.argsort(-np.abs(value))[:DIM]]


def numpy_distances(x: np.ndarray, labels: np.ndarray, leading) -> np.ndarray:
    """Calibrated distances of a task, the mean of both spaces."""
    z = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    z = z - z.mean(axis=0)
    spaces = (x, z @ leading(np.tanh(z.T @ z)))
    return sum(_numpy_calibrated(f, labels) for f in spaces) / 2


def _numpy_task(x: np.ndarray, labels: np.ndarray, leading) -> np.ndarray:
    dist = numpy_distances(x, labels, leading)
    s = len(labels)
    columns = [dist[s:, :s][:, labels == c].mean(axis=1) for c in range(5)]
    return np.stack(columns, axis=1)


def _numpy_calibrated(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Calibrated distances of one space, sets by loops over rows."""
    n, s = len(x), len(labels)
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    dist = np.sqrt(np.maximum(2 - 2 * x @ x.T, 0))
    np.fill_diagonal(dist, 0)
    rank = np.argsort(dist, axis=1, kind="stable")

    def reciprocal(i: int, count: int) -> np.ndarray:
        forward = rank[i, :count]
        backward = rank[forward, :count]
        return forward[np.where(backward == i)[0]]

    half = [reciprocal(i, round(K / 2) + 1) for i in range(n)]
    sets = []
    for i in range(n):
        base = reciprocal(i, K + 1)
        grown = base
        for g in base:
            if len(np.intersect1d(half[g], base)) >= 2 / 3 * len(half[g]):
                grown = np.append(grown, half[g])
        sets.append(np.unique(grown))
    for i in range(s):
        others = np.flatnonzero(labels != labels[i])
        sets[i] = np.setdiff1d(sets[i], others)
    for c in np.unique(labels):
        members = np.flatnonzero(labels == c)
        union = np.unique(np.concatenate([sets[i] for i in members]))
        for i in members:
            sets[i] = union
    code = np.zeros((n, n), np.float32)
    for i, members in enumerate(sets):
        weight = np.exp(-dist[i, members])
        code[i, members] = weight / weight.sum()
    code = np.stack([code[rank[i, :K2]].mean(axis=0) for i in range(n)])
    jaccard = np.zeros((n, n), np.float32)
    for i in range(n):
        shared = np.minimum(code[i], code).sum(axis=1)
        jaccard[i] = 1 - shared / (2 - shared)
    return 0.5 * dist + 0.5 * jaccard


def torch_tasks(x: np.ndarray, labels: np.ndarray, *, iterate: bool) -> np.ndarray:
    """All tasks in batched operations: what a good user of PyTorch writes."""
    import torch

    label_s = torch.from_numpy(labels)
    dist_enn = torch_distances(torch.from_numpy(x), label_s, iterate=iterate)
    s = len(labels)
    mean_sc = torch.nn.functional.one_hot(label_s.long(), 5).float()
    mean_sc = mean_sc / mean_sc.sum(0)
    return (dist_enn[:, s:, :s] @ mean_sc).numpy()


def torch_distances(x_end, label_s, *, iterate: bool):
    """Calibrated distances of both spaces, ``[e, n, n]``.

    Args:
      x_end: Tensor of features.
      label_s: Of the supports.
      iterate: Find the subspace from the rows and the 32 strongest coordinates by two
        rounds of subspace iteration, instead of decomposing the whole kernel.
    """
    import torch
    from torch.nn.functional import normalize

    z_end = normalize(x_end, dim=-1)
    z_end = z_end - z_end.mean(1, keepdim=True)
    kernel_edd = torch.tanh(z_end.mT @ z_end)
    if iterate:
        block_edb = _torch_block(z_end, kernel_edd)
        value_eb, vector_ebb = torch.linalg.eigh(block_edb.mT @ kernel_edd @ block_edb)
    else:
        block_edb, (value_eb, vector_ebb) = None, torch.linalg.eigh(kernel_edd)
    order_ep = value_eb.abs().topk(DIM, dim=-1).indices
    index_ebp = order_ep[:, None, :].expand(-1, vector_ebb.shape[1], -1)
    basis = vector_ebb.gather(2, index_ebp)
    basis = basis if block_edb is None else block_edb @ basis
    spaces = (x_end, z_end @ basis)
    return sum(_torch_calibrated(normalize(f, dim=-1), label_s) for f in spaces) / 2


def _torch_block(z_end, kernel_edd):
    """An orthonormal block that holds nearly all of the kernel."""
    import torch

    d = z_end.shape[2]
    strongest_em = z_end.square().sum(1).topk(32, dim=-1).indices
    unit_emd = torch.nn.functional.one_hot(strongest_em, d).float()
    block_edb = torch.cat([z_end, unit_emd], 1).mT
    for _ in range(2):
        block_edb = kernel_edd @ block_edb
        for _ in range(2):
            gram_ebb = block_edb.mT @ block_edb
            size_e = gram_ebb.abs().sum(2).amax(1)
            eye = torch.eye(gram_ebb.shape[1])
            gram_ebb = gram_ebb + 1e-6 * size_e[:, None, None] * eye
            factor_ebb = torch.linalg.cholesky(gram_ebb)
            block_edb = torch.linalg.solve_triangular(
                factor_ebb, block_edb.mT, upper=False
            ).mT
    return block_edb


def _torch_calibrated(unit_end, label_s):
    import torch

    e, n, _ = unit_end.shape
    s = len(label_s)
    dist_enn = (2 - 2 * unit_end @ unit_end.mT).clamp(min=0).sqrt()
    dist_enn.diagonal(dim1=1, dim2=2).zero_()
    rank_enr = dist_enn.topk(K + 1, dim=-1, largest=False, sorted=True).indices
    place_enn = torch.full((e, n, n), K + 1)
    place_enn.scatter_(2, rank_enr, torch.arange(K + 1).expand(e, n, -1))
    near_enn, close_enn = place_enn <= K, place_enn <= round(K / 2)
    base_enn = (near_enn & near_enn.mT).float()
    half_enn = (close_enn & close_enn.mT).float()
    joins_enn = base_enn * (3 * base_enn @ half_enn.mT >= 2 * half_enn.sum(2)[:, None])
    sets_enn = (base_enn + joins_enn @ half_enn > 0).float()
    same_ss = (label_s[:, None] == label_s[None, :]).float()
    support_esn = sets_enn[:, :s].clone()
    support_esn[:, :, :s] *= same_ss
    sets_enn[:, :s] = (same_ss @ support_esn > 0).float()
    code_enn = sets_enn * torch.exp(-dist_enn)
    code_enn = code_enn / code_enn.sum(2, keepdim=True)
    code_enn = (place_enn < K2).float() @ code_enn / K2
    # Rows sum to one: the sum of minima is one less half the distance in L1.
    shared_enn = 1 - torch.cdist(code_enn, code_enn, p=1) / 2
    return 0.5 * dist_enn + 0.5 * (1 - shared_enn / (2 - shared_enn))
