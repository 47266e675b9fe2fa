"""Draw the contact sheet of the built-in images: python docs/contact_sheet.py.

It shows some classes of every domain, and some images of each class.
"""

import pathlib

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rdc_jax.data.synthetic import DOMAINS, open_synthetic

_GAP = 2
_TITLE = 26


def contact_sheet(
    *, size: int = 48, rows: int = 9, columns: int = 4, seed: int = 0
) -> Image.Image:
    """Put the domains side by side, one class a row.

    Args:
      size: Edge of the images in pixels.
      rows: Classes of each domain, evenly spread over all it has.
      columns: Images of each class.
      seed: Seed of the images.
    """
    panels = [_panel(name, size, rows, columns, seed) for name in DOMAINS]
    width = sum(panel.width for panel in panels)
    sheet = Image.new("RGB", (width, panels[0].height), "white")
    left = 0
    for panel in panels:
        sheet.paste(panel, (left, 0))
        left += panel.width
    return sheet


def _panel(name: str, size: int, rows: int, columns: int, seed: int) -> Image.Image:
    source = open_synthetic(name, split="all", size=size, seed=seed, per_class=columns)
    step = size + _GAP
    names, small = source.class_names, ImageFont.load_default(11)
    left = 22 + round(max(small.getlength(name) for name in names))
    shape = (left + columns * step, _TITLE + rows * step)
    panel = Image.new("RGB", shape, "white")
    draw = ImageDraw.Draw(panel)
    title = f"{name} ({len(names)} classes)"
    draw.text((left, 6), title, "black", ImageFont.load_default(14))
    chosen = np.arange(rows) * len(names) // rows
    for row, label in enumerate(chosen):
        top = _TITLE + row * step
        at = (left - 6, top + size // 2)
        draw.text(at, names[label], "black", small, anchor="rm")
        for column in range(columns):
            image = source.image(int(label) * columns + column)
            panel.paste(Image.fromarray(image), (left + column * step, top))
    return panel


if __name__ == "__main__":
    # 256 colours: a third of the file, and hardly to be told apart.
    sheet = contact_sheet().quantize(256)
    sheet.save(pathlib.Path(__file__).parent / "images/synthetic.png", optimize=True)
