"""On real pictures, with a real network."""

import pytest
from predict.conftest import split

from rdc_jax.predict import RDCClassifier
from rdc_jax.predict.pictures import find_queries


@pytest.mark.slow
def test_flowers_are_told_apart(shared_dir, tmp_path):
    photos = tmp_path / "photos"
    for folder in sorted((shared_dir / "data/flowers102").iterdir())[:5]:
        for path in sorted(folder.iterdir())[:17]:
            target = photos / folder.name / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    folders = split(photos, tmp_path, shots=5)
    checkpoint = shared_dir / "weights/resnet10_miniimagenet84.tar"
    classifier = RDCClassifier(checkpoint, image_size=84).fit(folders.support)
    answers = classifier.explain(folders.query)
    assert answers.summary["method"] == "RDC+"
    assert [row.image for row in answers.rows] == [*find_queries(folders.query)]
    right = [folders.truth[row.image] == row.class_name for row in answers.rows]
    assert sum(right) / len(right) > 0.7  # chance is 0.2
    sure = [ok for ok, row in zip(right, answers.rows, strict=True) if not row.rejected]
    assert sum(sure) / len(sure) > sum(right) / len(right)
