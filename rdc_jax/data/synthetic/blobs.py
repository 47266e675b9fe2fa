"""A target domain: stained cells under a microscope.

A class is a combination of three traits: how large the cells are, whether they are
round or rods, and how they take the stain. Their places, number, directions, the
stain's colour and strength, focus and illumination vary from image to image.
"""

from collections.abc import Callable
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from rdc_jax.data.synthetic.canvas import (
    Domain,
    Field,
    Picture,
    Value,
    cover,
    expose,
    grid,
    hsv,
    length,
    mix,
    noise,
    turn,
)
from rdc_jax.data.synthetic.hash_rng import Seed, fork, uniform, uniforms

SIZES = ("small", "large")
FORMS = ("round", "rod-like")
STAINS = ("solid", "ringed", "nucleated", "grainy")
LATTICE = 4  # cells along an edge, where all are present and of the smaller kind


Stain = Callable[[Field, Field, Value], Field]
_DOSES: tuple[Stain, ...] = (  # from the radius, noise and the width of an edge
    lambda r, _, edge: cover(r - 0.8, edge),
    lambda r, _, edge: (
        cover(jnp.abs(r - 0.75) - 0.12, edge) + 0.12 * cover(r - 0.8, edge)
    ),
    lambda r, _, edge: 0.35 * cover(r - 0.95, edge) + 0.65 * cover(r - 0.38, edge),
    lambda r, fuzz, edge: (
        cover(r - 0.85, edge) * jnp.clip(0.45 + 0.45 * fuzz, 0.0, 1.0)
    ),
)


def paint(seed: Seed, label: Int[Array, ""], size: int) -> Picture:
    """Paint one field of view with cells of kind ``label``."""
    field, grains, slide, camera = fork(seed, 4)
    forms = len(FORMS) * len(STAINS)
    large, rods = label // forms, label // len(STAINS) % len(FORMS)
    stain = label % len(STAINS)
    radius, tone, zoom = _cells(field, large, rods, size)
    edge = 3.5 * zoom * LATTICE / size
    fuzz = noise(grains, size, 32)
    dose = jax.lax.switch(stain, _DOSES, radius, fuzz, edge)
    return expose(camera, _slide(slide, stain, dose * tone), grain=0.02)


def _cells(
    seed: Seed, large: Int[Array, ""], rods: Int[Array, ""], size: int
) -> tuple[Field, Field, Value]:
    """Distance from the nearest cell's centre in its radii, its darkness, the zoom."""
    layout, places = fork(seed, 2)
    view = uniforms(
        layout,
        zoom=(0.8, 1.1),
        at_x=(-0.5, 0.5),
        at_y=(-0.5, 0.5),
        crowd=(0.7, 1.0),
        lie=(-0.6, 0.6),
        disorder=(0.2, 1.2),
    )
    zoom = view.zoom * jnp.where(large > 0, 0.55, 1.0)
    x, y = (0.5 * LATTICE * zoom * z for z in grid(size))
    column, row = (z.ravel() - LATTICE // 2 for z in np.indices((LATTICE, LATTICE)))
    jitter_x, jitter_y, spin, bulk, absent, dark = (
        uniform(places, column, row, np.int32(i)) for i in range(6)
    )
    slim = jnp.where(rods > 0, 1.55, 1.07)

    def cell(at_x: Value, at_y: Value, angle: Value, radius: Value) -> Field:
        """Distance from the centre of one elongated cell, in its radii."""
        along, across = turn(x - at_x, y - at_y, angle)
        return length(along / slim, across * slim) / radius

    away = jax.vmap(cell)(
        column + 0.5 + 0.45 * (jitter_x - 0.5) + view.at_x,
        row + 0.5 + 0.45 * (jitter_y - 0.5) + view.at_y,
        view.lie + view.disorder * (spin - 0.5),
        jnp.where(absent < view.crowd, 0.34 + 0.17 * bulk, 1e-3),
    )
    nearest = away.min(axis=0)
    tones = jnp.where(away == nearest, (0.7 + 0.3 * dark)[:, None, None], 0.0)
    return nearest, tones.max(axis=0), zoom


def _slide(seed: Seed, stain: Int[Array, ""], dose: Field) -> Picture:
    """Stain on a pale, uneven ground, in the round field of the ocular."""
    colours, ground = fork(seed, 2)
    size = dose.shape[0]
    x, y = grid(size)
    look = uniforms(
        colours,
        shift=(-0.06, 0.06),
        hue=(0.78, 0.98),
        strength=(0.85, 1.0),
        pale=(0.06, 0.16),
        rim=(1.05, 1.25),
        at_x=(-0.1, 0.1),
        at_y=(-0.1, 0.1),
    )
    uneven = 0.05 * noise(ground, size, 5)
    glass = hsv(look.hue, look.pale, 0.93) * (1.0 + uneven)[:, :, None]
    dye = hsv(0.7 + 0.09 * stain + look.shift, 0.75, 0.42)
    picture = mix(glass, dye, jnp.clip(look.strength * dose, 0.0, 1.0))
    field = cover(length(x - look.at_x, y - look.at_y) - look.rim, 0.12)
    return picture * (0.06 + 0.94 * field)[:, :, None]


KINDS = tuple(" ".join(traits) for traits in product(SIZES, FORMS, STAINS))
BLOBS = Domain(KINDS, paint)
