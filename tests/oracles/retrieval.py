"""Average precision and first hit of one query, step by step."""


def score(distances, query_class, query_camera, classes, cameras):
    """(average precision, rank of the first hit), or None without a fitting row."""
    junk = {
        j
        for j in range(len(classes))
        if classes[j] < 0 or (classes[j], cameras[j]) == (query_class, query_camera)
    }
    ranked = sorted(set(range(len(classes))) - junk, key=lambda j: (distances[j], j))
    precisions, first = [], None
    for rank, j in enumerate(ranked, start=1):
        if classes[j] == query_class:
            first = first or rank
            precisions.append((len(precisions) + 1) / rank)
    return (sum(precisions) / len(precisions), first) if precisions else None
