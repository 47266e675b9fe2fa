"""The transductive methods in plain float64 NumPy, one row at a time.

Written from the papers' descriptions; nothing here is shared with the package. Each
takes prepared features ``support [s, d]``, ``labels`` (Python ints), ``query [q, d]``,
``num_classes`` and the method's parameters, and gives class distances ``[q, c]``.
"""

import math

import numpy as np


def squared(a, b):
    return float(((np.asarray(a) - np.asarray(b)) ** 2).sum())


def unit(row):
    length = math.sqrt(float((row**2).sum()))
    return row / length if length > 0 else row


def softmax(row):
    e = np.exp(row - row.max())
    return e / e.sum()


def prototypes(support, labels, c):
    rows = [
        [x for x, y in zip(support, labels, strict=True) if y == j] for j in range(c)
    ]
    return np.stack([np.mean(mine, axis=0) for mine in rows])


def means(support, labels, query, answers, c):
    """Class means over the supports and the queries, by their answers."""
    out = []
    for j in range(c):
        total, mass = np.zeros(support.shape[1]), 0.0
        for x, y in zip(support, labels, strict=True):
            if y == j:
                total, mass = total + x, mass + 1
        for x, z in zip(query, answers, strict=True):
            total, mass = total + z[j] * x, mass + z[j]
        out.append(total / mass)
    return np.stack(out)


def squares(query, centres):
    return np.array([[squared(x, mean) for mean in centres] for x in query])


def npc_prepared(support, labels, query, c):
    return np.sqrt(squares(query, prototypes(support, labels, c)))


def soft_kmeans(support, labels, query, c, temperature, steps):
    centres = prototypes(support, labels, c)
    for _ in range(steps):
        answers = [softmax(-temperature * row) for row in squares(query, centres)]
        centres = means(support, labels, query, answers, c)
    return squares(query, centres)


def rectified(support, labels, query, c, temperature):
    start = [unit(mean) for mean in prototypes(support, labels, c)]
    members = [(unit(x), y) for x, y in zip(support, labels, strict=True)]
    for x in query:
        members.append((unit(x), int(np.argmax([unit(x) @ mean for mean in start]))))
    out = []
    for j in range(c):
        mine = [x for x, y in members if y == j]
        weights = softmax(np.array([temperature * (x @ start[j]) for x in mine]))
        out.append(unit(sum(w * x for w, x in zip(weights, mine, strict=True))))
    return np.stack(out)


def bd_cspn(support, labels, query, c, temperature):
    query = query + (np.mean(support, axis=0) - np.mean(query, axis=0))
    centres = rectified(support, labels, query, c, temperature)
    return np.array([[1 - unit(x) @ mean for mean in centres] for x in query])


def neighbours(rows, i, k):
    others = [j for j in range(len(rows)) if j != i]
    return sorted(others, key=lambda j: (-(rows[i] @ rows[j]), j))[:k]


def label_propagation(support, labels, query, c, k, alpha, power):
    nothing = np.zeros((len(query), c))
    spread = propagated(support, labels, query, nothing, k, alpha, power)
    return -np.log((spread / spread.sum(axis=0))[len(support) :])


def propagated(support, labels, query, start, k, alpha, power):
    """Labels of the supports and what the queries start with, over the graph."""
    rows = np.stack([unit(x) for x in np.concatenate([support, query])])
    return spread_over(rows @ rows.T, labels, start, k, alpha, power)


def spread_over(cosine, labels, start, k, alpha, power):
    n = len(cosine)
    weight = np.zeros((n, n))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for j in sorted(others, key=lambda j: (-cosine[i, j], j))[:k]:
            weight[i, j] += max(cosine[i, j], 0) ** power
            weight[j, i] += max(cosine[i, j], 0) ** power
    degree = weight.sum(axis=1)
    smooth = weight / np.sqrt(np.outer(degree, degree))
    truth = np.eye(start.shape[1])[labels]
    return np.linalg.solve(np.eye(n) - alpha * smooth, np.concatenate([truth, start]))


def coordinates_of(rows, power):
    """Rows of length one whose inner products are a power of the rows'."""
    values, vectors = np.linalg.eigh(rows @ rows.T)
    values = np.where(values > 1e-9, values, 0)
    coordinates = vectors * values ** (power / 2)
    return np.stack([unit(x) for x in coordinates])


def weighted_logits(rows, weights, query, strength, steps):
    """As ``logistic_logits``, of rows that belong to several classes."""
    x = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    mass = weights.sum(axis=1)
    sums = [
        sum(m * abs(a @ b) for b, m in zip(x, mass, strict=True))
        for a, own in zip(x, mass, strict=True)
        if own > 0
    ]
    curvature = 1 + strength / 2 * max(sums)
    momentum = (math.sqrt(curvature) - 1) / (math.sqrt(curvature) + 1)
    head = ahead = np.zeros((x.shape[1], weights.shape[1]))
    for _ in range(steps):
        gradient = ahead.copy()
        for row, own in zip(x, weights, strict=True):
            wrong = own.sum() * softmax(row @ ahead) - own
            gradient = gradient + strength * np.outer(row, wrong)
        moved = ahead - gradient / curvature
        head, ahead = moved, moved + momentum * (moved - head)
    return np.stack([np.append(row, 1) @ head for row in query])


def rdc_plus(
    support, labels, query, c, evened, k, alpha, strength, temperature, **others
):
    prior, join, sharpen, turns, steps = (
        others[name] for name in ("prior", "join", "sharpen", "turns", "steps")
    )
    rows, s = np.concatenate([support, query]), len(support)
    rows = coordinates_of(rows, 0.5 if evened else 1.0)
    joining = np.zeros((len(query), c))
    for _ in range(turns):
        weights = np.concatenate([np.eye(c)[labels], joining])
        logits = weighted_logits(rows, weights, rows[s:], strength, steps)
        start = prior * np.stack([softmax(temperature * row) for row in logits])
        spread = spread_over(rows @ rows.T, labels, start, k, alpha, 3.0)
        reached = (spread / spread.sum(axis=0))[s:]
        reached = np.stack([row / row.sum() for row in reached])
        joining = np.stack([row**sharpen / (row**sharpen).sum() for row in reached])
        joining = join * joining / [labels.count(j) ** 2 for j in range(c)]
    return -np.log(reached)


def laplacian_shot(support, labels, query, c, knn, lam, temperature, rectify, steps):
    centres = prototypes(support, labels, c)
    if rectify:
        centres = rectified(support, labels, query, c, 10.0)
    unary = -temperature * squares(query, centres)
    rows = [unit(x) for x in query]
    near = [neighbours(rows, i, knn - 1) for i in range(len(rows))]
    answers = [softmax(row) for row in unary]
    for _ in range(steps):
        answers = [
            softmax(unary[i] + lam * sum(answers[j] for j in near[i]))
            for i in range(len(rows))
        ]
    return -np.log(np.stack(answers))


def paddle(support, labels, query, c, temperature, lam, steps):
    centres, log_share = prototypes(support, labels, c), np.zeros(c)

    def logits():
        return lam * log_share - temperature / 2 * squares(query, centres)

    for _ in range(steps):
        answers = [softmax(row) for row in logits()]
        log_share = np.log(np.mean(answers, axis=0) + 1e-12)
        centres = means(support, labels, query, answers, c)
    return -logits()


def tim_logs(rows, centres, temperature):
    return [np.log(softmax(-temperature / 2 * row)) for row in squares(rows, centres)]


def tim_adm(support, labels, query, c, temperature, fit, even, sure, steps):
    centres = prototypes(support, labels, c)
    s, q = len(support), len(query)
    for _ in range(steps):
        p_s = np.exp(tim_logs(support, centres, temperature))
        p_q = np.exp(tim_logs(query, centres, temperature))
        aim = p_q ** (1 + sure)
        aim = aim / aim.sum(axis=0) ** (even / (1 + even))
        aim = aim / aim.sum(axis=1, keepdims=True)
        new = []
        for j in range(c):
            total, mass = np.zeros(support.shape[1]), 0.0
            for x, y, p in zip(support, labels, p_s, strict=True):
                share = fit / (1 + sure) / s
                total = total + share * ((y == j) * x + p[j] * (centres[j] - x))
                mass += share * (y == j)
            for x, a, p in zip(query, aim, p_q, strict=True):
                total = total + (a[j] * x + p[j] * (centres[j] - x)) / q
                mass += a[j] / q
            new.append(total / mass)
        centres = np.stack(new)
    return squares(query, centres)


def tsallis(p, order):
    if order == 1:
        return -float(sum(value * math.log(value + 1e-12) for value in p))
    return (1 - float(sum(value**order for value in p))) / (order - 1)


def information(support, labels, query, centres, temperature, weights, order):
    logs_s = tim_logs(support, centres, temperature)
    answers = np.exp(tim_logs(query, centres, temperature))
    cross = -np.mean([row[y] for row, y in zip(logs_s, labels, strict=True)])
    own = np.mean([tsallis(row, order) for row in answers])
    fit, even, sure = weights
    return fit * cross - even * tsallis(answers.mean(axis=0), order) + sure * own


def by_adam(support, labels, query, c, temperature, weights, order, steps, rate):
    """Adam with gradients by central differences."""
    x = prototypes(support, labels, c)
    first, second = np.zeros_like(x), np.zeros_like(x)
    for t in range(1, steps + 1):
        gradient = np.zeros_like(x)
        for place in np.ndindex(*x.shape):
            step = np.zeros_like(x)
            step[place] = 1e-5
            ends = [
                information(support, labels, query, at, temperature, weights, order)
                for at in (x + step, x - step)
            ]
            gradient[place] = (ends[0] - ends[1]) / 2e-5
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        unbiased = first / (1 - 0.9**t), second / (1 - 0.999**t)
        x = x - rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
    return squares(query, x)


def even_plan(kernel, scalings):
    """Rows to one, columns to equal sums, in turns."""
    q, c = kernel.shape
    plan = kernel.copy()
    for _ in range(scalings):
        for i in range(q):
            plan[i] /= plan[i].sum()
        for j in range(c):
            plan[:, j] *= q / c / plan[:, j].sum()
    return plan


def pt_map(support, labels, query, c, temperature, rate, steps, scalings):
    centres = prototypes(support, labels, c)

    def plan():
        return even_plan(np.exp(-temperature * squares(query, centres)), scalings)

    for _ in range(steps):
        centres = centres + rate * (means(support, labels, query, plan(), c) - centres)
    return -np.log(plan())


def proto_lp(
    support, labels, query, c, temperature, gamma, beta, rate, steps, scalings
):
    centres = prototypes(support, labels, c)
    truth = np.zeros((len(labels), c))
    for i, y in enumerate(labels):
        truth[i, y] = 1

    def plan():
        return even_plan(np.exp(-temperature * squares(query, centres)), scalings)

    for _ in range(steps):
        p = plan()
        rows = np.concatenate([truth, p])
        shared = rows.T @ rows
        laplacian = np.eye(c) - shared / np.sqrt(
            np.outer(shared.sum(axis=1), shared.sum(axis=1))
        )
        a = np.linalg.solve(truth.T @ truth + gamma * laplacian, truth.T @ truth)
        both = beta * even_plan(p @ a, scalings) + (1 - beta) * p
        centres = centres + rate * (means(support, labels, query, both, c) - centres)
    return -np.log(plan())


def logistic_logits(rows, labels, query, c, strength, steps):
    """Accelerated gradient on the head itself, its intercept penalised."""
    x = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    curvature = 1 + strength / 2 * max(sum(abs(a @ b) for b in x) for a in x)
    momentum = (math.sqrt(curvature) - 1) / (math.sqrt(curvature) + 1)
    head = ahead = np.zeros((x.shape[1], c))
    for _ in range(steps):
        gradient = ahead.copy()
        for row, y in zip(x, labels, strict=True):
            answer = softmax(row @ ahead)
            answer[y] -= 1
            gradient = gradient + strength * np.outer(row, answer)
        moved = ahead - gradient / curvature
        head, ahead = moved, moved + momentum * (moved - head)
    return np.stack([np.append(row, 1) @ head for row in query])


def logistic(support, labels, query, c, strength, steps):
    return -logistic_logits(support, labels, query, c, strength, steps)


def ldp_tr(support, labels, query, c, take, of_means, strength, rounds, steps):
    answers, taken = None, []
    for _ in range(rounds + 1):
        if answers is not None:
            taken = []
            for j in range(c):
                mine = [i for i in range(len(query)) if answers[i].argmax() == j]
                mine.sort(key=lambda i: (-answers[i][j], i))
                taken += [(i, j) for i in mine[:take]]
        x = [*support, *(query[i] for i, _ in taken)]
        y = [*labels, *(j for _, j in taken)]
        if of_means:
            x = [
                np.mean([r for r, k in zip(x, y, strict=True) if k == j], 0)
                for j in range(c)
            ]
            y = list(range(c))
        logits = logistic_logits(np.stack(x), y, query, c, strength, steps)
        answers = [softmax(row) for row in logits]
    return -logits


def opta(support, labels, query, c, epsilon, passes, mix, scalings, strength, steps):
    centres = prototypes(support, labels, c)
    for _ in range(passes):
        cost = squares(query, centres)
        plan = even_plan(np.exp(-cost / cost.max() / epsilon), scalings)
        moved = [
            sum(w * x for w, x in zip(plan[:, j], query, strict=True))
            / plan[:, j].sum()
            for j in range(c)
        ]
        centres = mix * np.stack(moved) + (1 - mix) * centres
    return -logistic_logits(centres, list(range(c)), query, c, strength, steps)
