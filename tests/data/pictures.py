"""Small pictures and folders of them, written for tests of data sources."""

import io

import numpy as np
from PIL import Image


def pixels(seed, size=(12, 10)):
    """Noise: no two seeds give the same picture."""
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)


def encode(image, file_format="PNG", **options):
    """Bytes of an image, given as an array or a PIL image."""
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def write(path, seed=0, **options):
    """Write one picture; the format follows the name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file_format = "PNG" if path.suffix == ".png" else "JPEG"
    path.write_bytes(encode(pixels(seed), file_format, **options))
    return path


def make_folder(root, classes, images=2):
    """Write ``root/<class>/<number>.png`` with different pictures everywhere."""
    for label, name in enumerate(classes):
        for number in range(images):
            write(root / name / f"{number:03}.png", seed=label * 1000 + number)
    return root


def make_empty_files(root, classes, images=1):
    """Like ``make_folder``, for tests that never decode: thousands in a moment."""
    for name in classes:
        (root / name).mkdir(parents=True)
        for number in range(images):
            (root / name / f"{number:05}.jpg").touch()
    return root
