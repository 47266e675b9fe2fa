"""A target domain: materials seen close up, lit from the side.

A class is the structure of the material ("woven", "cracked"). Its direction, scale,
distortion, colours and depth vary from image to image.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from rdc_jax.data.synthetic.canvas import (
    Domain,
    Field,
    Picture,
    cells,
    expose,
    grid,
    hsv,
    length,
    mix,
    noise,
    relief,
    turn,
    wave,
)
from rdc_jax.data.synthetic.hash_rng import Seed, fork, uniforms


class Cloth(NamedTuple):
    """What a structure is computed from; the coordinates have about unit period."""

    u: Field
    v: Field
    fuzz: Field  # smooth noise
    first: Field  # Voronoi: distance to the nearest point
    second: Field  # ... and to the next one
    tone: Field  # ... and a random number of the cell


def _from_centre(u: Field, v: Field) -> tuple[Field, Field]:
    """Coordinates from the centre of the unit square that a point is in."""
    return u % 1.0 - 0.5, v % 1.0 - 0.5


def _bricks(c: Cloth) -> Field:
    du, dv = _from_centre(0.5 * c.u + 0.5 * jnp.floor(c.v), c.v)
    return 6.0 * jnp.minimum(1.0 - 2 * jnp.abs(du), 0.5 - jnp.abs(dv))


def _woven(c: Cloth) -> Field:
    du, dv = _from_centre(c.u, c.v)
    over = (jnp.floor(c.u) + jnp.floor(c.v)) % 2 < 1
    across, along = jnp.where(over, du, dv), jnp.where(over, dv, du)
    return 1.15 - 4.0 * across**2 - 1.2 * along**2


def _meshed(c: Cloth) -> Field:
    du, dv = _from_centre(c.u, c.v)
    return 1.1 - 6.0 * (0.5 - jnp.maximum(jnp.abs(du), jnp.abs(dv)))


def _tartan(c: Cloth) -> Field:
    bands = wave(0.5 * c.u) + wave(0.5 * c.v)
    lines = wave(1.5 * c.u) ** 8 + wave(1.5 * c.v) ** 8
    return 0.35 * bands + 0.25 * lines


def _scaly(c: Cloth) -> Field:
    row = jnp.floor(2 * c.v)
    du, dv = (c.u + 0.5 * row) % 1.0 - 0.5, c.v - 0.5 * row
    # A scale lies over those of the next row, which show between it and its twin.
    upper = length((du + 1.0) % 1.0 - 0.5, dv + 0.5)
    return 1.15 - 1.9 * jnp.where(upper < 0.55, upper, length(du, dv))


def _honeycomb(c: Cloth) -> Field:
    # Two rectangular lattices make a hexagonal one; the nearer centre counts.
    tall = 3.0**0.5
    even_u, even_v = c.u % 1.0 - 0.5, c.v % tall - tall / 2
    odd_u, odd_v = (c.u + 0.5) % 1.0 - 0.5, (c.v + tall / 2) % tall - tall / 2
    even = length(even_u, even_v) < length(odd_u, odd_v)
    du = jnp.abs(jnp.where(even, even_u, odd_u))
    dv = jnp.abs(jnp.where(even, even_v, odd_v))
    return 5.0 * (0.5 - jnp.maximum(du, 0.5 * du + 0.5 * tall * dv))


STRUCTURES: dict[str, Callable[[Cloth], Field]] = {
    "striped": lambda c: wave(c.u),
    "zigzag": lambda c: wave(c.v + 0.9 * jnp.abs(0.8 * c.u % 1.0 - 0.5)),
    "chequered": lambda c: (
        0.5 + 3.0 * (wave(0.5 * c.u) - 0.5) * (wave(0.5 * c.v) - 0.5)
    ),
    "dotted": lambda c: 1.9 - 5.0 * length(*_from_centre(c.u, c.v)),
    "bricks": _bricks,
    "woven": _woven,
    "meshed": _meshed,
    "tartan": _tartan,
    "marbled": lambda c: 1.0 - 2.2 * jnp.abs(wave(0.35 * c.u + 0.55 * c.fuzz) - 0.5),
    "ringed": lambda c: wave(length(0.5 * c.u, c.v) + 0.12 * c.fuzz),
    "cracked": lambda c: 0.15 + 3.5 * (c.second - c.first),
    "pebbled": lambda c: (1.0 - 1.3 * c.first) * (0.55 + 0.45 * c.tone),
    "scaly": _scaly,
    "spotted": lambda c: 4.0 * jnp.abs(c.first - 0.36) + 0.3 * c.tone,
    "cloudy": lambda c: 0.5 + 0.3 * c.fuzz,
    "honeycomb": _honeycomb,
}


def paint(seed: Seed, label: Int[Array, ""], size: int) -> Picture:
    """Paint one sample of the material ``label``."""
    cloth, dye, camera = fork(seed, 3)
    structure = tuple(STRUCTURES.values())
    height = jax.lax.switch(label, structure, _weave(cloth, size))
    return expose(camera, _dye(dye, label, jnp.clip(height, 0.0, 1.0)), grain=0.03)


def _weave(seed: Seed, size: int) -> Cloth:
    """Turned, scaled, slightly crumpled coordinates and what comes with them."""
    placing, coarse, fine, points = fork(seed, 4)
    x, y = grid(size)
    lie = uniforms(
        placing,
        angle=(-0.4, 0.4),
        scale=(0.8, 1.9),
        stretch=(-0.2, 0.2),
        at_u=(-1.0, 1.0),
        at_v=(-1.0, 1.0),
        crumple=(0.0, 0.16),
    )
    u, v = turn(x, y, lie.angle)
    folds = noise(coarse, size, 3)
    u = u * lie.scale * jnp.exp(lie.stretch) + lie.at_u + lie.crumple * folds
    v = v * lie.scale + lie.at_v - lie.crumple * folds
    fuzz = 0.8 * folds + 0.45 * noise(fine, size, 8)
    return Cloth(u, v, fuzz, *cells(points, u, v, order=0.15))


def _dye(seed: Seed, label: Int[Array, ""], height: Field) -> Picture:
    """Colour the height between two dyes, and light it from one side."""
    dye = uniforms(
        seed,
        own=(0.0, 1.0),
        shift=(-0.08, 0.08),
        apart=(-0.15, 0.15),
        low=(0.1, 0.35),
        high=(0.6, 0.95),
        dull=(0.1, 0.5),
        bright=(0.05, 0.35),
        light=(-3.1, 0.0),
        depth=(0.02, 0.09),
        side=(0.0, 1.0),
    )
    # Half of the images show the material's own colour, the others any.
    hue = jnp.where(dye.own < 0.5, 2 * dye.own, label * 0.618 + dye.shift)
    lit = 1.0 + jnp.clip(relief(height, dye.light, dye.depth), -0.5, 0.5)
    amount = jnp.where(dye.side < 0.15, 1.0 - height, height)
    dark, pale = hsv(hue, dye.dull, dye.low), hsv(hue + dye.apart, dye.bright, dye.high)
    return mix(dark, pale, amount) * lit[:, :, None]


TEXTURES = Domain(tuple(STRUCTURES), paint)
