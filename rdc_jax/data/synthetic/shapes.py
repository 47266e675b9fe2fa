"""The shapes that things of the source domain are made of.

Bodies and parts are signed distances in the thing's own coordinates, in which a body
is about one unit across; patterns are the darkness of a body's surface, 0 to 1.
"""

from collections.abc import Callable

import jax.numpy as jnp

from rdc_jax.data.synthetic.canvas import Field, Point, length, segment, wave

Shape = Callable[[Field, Field], Field]


def _box(x: Field, y: Field, wide: float, high: float) -> Field:
    return jnp.maximum(jnp.abs(x) - wide, jnp.abs(y) - high)


def _disc(x: Field, y: Field, at: Point, radius: float) -> Field:
    return length(x - at[0], y - at[1]) - radius


def _hoop(x: Field, y: Field, at: Point, radius: float, thickness: float) -> Field:
    return jnp.abs(_disc(x, y, at, radius)) - thickness


def _stick(
    x: Field, y: Field, start: Point, end: Point, thickness: float = 0.05
) -> Field:
    return segment(x, y, start, end) - thickness


def _drum(x: Field, y: Field) -> Field:
    x, y = jnp.abs(x), jnp.abs(y)
    return jnp.maximum(0.87 * x + 0.5 * y, y) - 0.42


def _bottle(x: Field, y: Field) -> Field:
    belly, neck = _box(x, y - 0.14, 0.28, 0.34), _box(x, y + 0.3, 0.1, 0.22)
    return jnp.minimum(belly, neck)


def _antennae(x: Field, y: Field) -> Field:
    x = jnp.abs(x)
    tip = _disc(x, y, (0.34, -0.8), 0.1)
    return jnp.minimum(_stick(x, y, (0.1, -0.2), (0.34, -0.8), 0.035), tip)


def _wings(x: Field, y: Field) -> Field:
    x = jnp.abs(x) - 0.62
    return length(0.75 * x, 1.6 * (y + 0.25 * x + 0.08)) - 0.25


def _crown(x: Field, y: Field) -> Field:
    teeth = 0.16 * jnp.abs(x * 6.0 % 1.0 - 0.5) * 2.0
    return jnp.maximum(jnp.abs(x) - 0.34, jnp.abs(y + 0.5) - 0.12 - teeth)


def _stem(x: Field, y: Field) -> Field:
    leaf = length(0.6 * (x - 0.2), 1.5 * (y + 0.72 - 0.3 * (x - 0.2))) - 0.12
    return jnp.minimum(_stick(x, y, (0.0, -0.3), (0.06, -0.78)), leaf)


def _pedestal(x: Field, y: Field) -> Field:
    foot = _box(x, y - 0.74, 0.42, 0.07)
    return jnp.minimum(_stick(x, y, (0.0, 0.3), (0.0, 0.7), 0.09), foot)


def _tail(x: Field, y: Field) -> Field:
    curl = _hoop(x, y, (-0.66, 0.08), 0.2, 0.055)
    return jnp.maximum(curl, 0.5 * (y - 0.1) - 0.5 * (x + 0.66))


def _quills(x: Field, y: Field) -> Field:
    angle = jnp.arctan2(y, x)
    return length(x, y) - 0.5 - 0.22 * wave(angle * 11 / (2 * jnp.pi)) ** 3


BODIES: dict[str, Shape] = {
    "ball": lambda x, y: length(x, y) - 0.46,
    "box": lambda x, y: _box(x, y, 0.46, 0.36),
    "cone": lambda x, y: jnp.maximum(0.89 * jnp.abs(x) - 0.45 * (y + 0.52), y - 0.44),
    "drum": _drum,
    "bottle": _bottle,
    "ring": lambda x, y: jnp.abs(length(x, y) - 0.33) - 0.14,
    "star": lambda x, y: length(x, y) - 0.37 - 0.13 * jnp.cos(5 * jnp.arctan2(x, -y)),
    "moon": lambda x, y: jnp.maximum(
        length(x, y) - 0.48, 0.36 - length(x - 0.24, y + 0.12)
    ),
}
PARTS: dict[str, Shape] = {
    "legs": lambda x, y: _stick(jnp.abs(x), y, (0.2, 0.25), (0.3, 0.8)),
    "wheels": lambda x, y: _disc(jnp.abs(x), y, (0.3, 0.46), 0.19),
    "ears": lambda x, y: _disc(jnp.abs(x), y, (0.32, -0.46), 0.2),
    "antennae": _antennae,
    "wings": _wings,
    "a handle": lambda x, y: _hoop(x, y, (0.52, 0.0), 0.24, 0.055),
    "a hoop": lambda x, y: _hoop(x, y, (0.0, -0.36), 0.38, 0.045),
    "a crown": _crown,
    "a stem": _stem,
    "a pedestal": _pedestal,
    "a tail": _tail,
    "quills": _quills,
}
PATTERNS: tuple[Shape, ...] = (
    lambda x, y: jnp.zeros_like(x),  # plain
    lambda x, y: wave(3.2 * x + 1.2 * y),  # stripes
    lambda x, y: wave(4.0 * y),  # bands
    lambda x, y: jnp.minimum(1.0, 1.6 * wave(3.5 * (x + y)) * wave(3.5 * (x - y))),
    lambda x, y: wave(4.5 * length(x, y)),  # rings
    lambda x, y: jnp.clip(
        0.5 + 8.0 * (wave(2.0 * x) - 0.5) * (wave(2.0 * y) - 0.5), 0.0, 1.0
    ),
    lambda x, y: wave(3.0 * y + 2.0 * jnp.abs(x)),  # chevrons
)
