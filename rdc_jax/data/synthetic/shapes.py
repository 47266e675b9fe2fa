"""The shapes that things of the source domain are made of.

Bodies and parts are signed distances in the thing's own coordinates, in which a body
is about one unit across; patterns are the darkness of a body's surface, 0 to 1.
"""

import jax.numpy as jnp

from rdc_jax.data.synthetic.canvas import Field, Point, length, segment, wave


def _ball(x: Field, y: Field) -> Field:
    return length(x, y) - 0.46


def _box(x: Field, y: Field) -> Field:
    return jnp.maximum(jnp.abs(x) - 0.46, jnp.abs(y) - 0.36)


def _cone(x: Field, y: Field) -> Field:
    return jnp.maximum(0.89 * jnp.abs(x) - 0.45 * (y + 0.52), y - 0.44)


def _drum(x: Field, y: Field) -> Field:
    x, y = jnp.abs(x), jnp.abs(y)
    return jnp.maximum(0.87 * x + 0.5 * y, y) - 0.42


def _bottle(x: Field, y: Field) -> Field:
    belly = jnp.maximum(jnp.abs(x) - 0.28, jnp.abs(y - 0.14) - 0.34)
    neck = jnp.maximum(jnp.abs(x) - 0.1, jnp.abs(y + 0.3) - 0.22)
    return jnp.minimum(belly, neck)


def _ring(x: Field, y: Field) -> Field:
    return jnp.abs(length(x, y) - 0.33) - 0.14


def _star(x: Field, y: Field) -> Field:
    angle = jnp.arctan2(x, -y)
    return length(x, y) - 0.37 - 0.13 * jnp.cos(5 * angle)


def _moon(x: Field, y: Field) -> Field:
    return jnp.maximum(length(x, y) - 0.48, 0.36 - length(x - 0.24, y + 0.12))


def _disc(x: Field, y: Field, at: Point, radius: float) -> Field:
    return length(x - at[0], y - at[1]) - radius


def _stick(
    x: Field, y: Field, start: Point, end: Point, thickness: float = 0.05
) -> Field:
    return segment(x, y, start, end) - thickness


def _legs(x: Field, y: Field) -> Field:
    return _stick(jnp.abs(x), y, (0.2, 0.25), (0.3, 0.8))


def _wheels(x: Field, y: Field) -> Field:
    return _disc(jnp.abs(x), y, (0.3, 0.46), 0.19)


def _ears(x: Field, y: Field) -> Field:
    return _disc(jnp.abs(x), y, (0.32, -0.46), 0.2)


def _antennae(x: Field, y: Field) -> Field:
    x = jnp.abs(x)
    tip = _disc(x, y, (0.34, -0.8), 0.1)
    return jnp.minimum(_stick(x, y, (0.1, -0.2), (0.34, -0.8), 0.035), tip)


def _wings(x: Field, y: Field) -> Field:
    x = jnp.abs(x) - 0.62
    return length(0.75 * x, 1.6 * (y + 0.25 * x + 0.08)) - 0.25


def _handle(x: Field, y: Field) -> Field:
    return jnp.abs(_disc(x, y, (0.52, 0.0), 0.24)) - 0.055


def _hoop(x: Field, y: Field) -> Field:
    return jnp.abs(_disc(x, y, (0.0, -0.36), 0.38)) - 0.045


def _crown(x: Field, y: Field) -> Field:
    teeth = 0.16 * jnp.abs(x * 6.0 % 1.0 - 0.5) * 2.0
    return jnp.maximum(jnp.abs(x) - 0.34, jnp.abs(y + 0.5) - 0.12 - teeth)


def _stem(x: Field, y: Field) -> Field:
    leaf = length(0.6 * (x - 0.2), 1.5 * (y + 0.72 - 0.3 * (x - 0.2))) - 0.12
    return jnp.minimum(_stick(x, y, (0.0, -0.3), (0.06, -0.78)), leaf)


def _pedestal(x: Field, y: Field) -> Field:
    foot = jnp.maximum(jnp.abs(x) - 0.42, jnp.abs(y - 0.74) - 0.07)
    return jnp.minimum(_stick(x, y, (0.0, 0.3), (0.0, 0.7), 0.09), foot)


def _tail(x: Field, y: Field) -> Field:
    curl = jnp.abs(_disc(x, y, (-0.66, 0.08), 0.2)) - 0.055
    return jnp.maximum(curl, 0.5 * (y - 0.1) - 0.5 * (x + 0.66))


def _quills(x: Field, y: Field) -> Field:
    angle = jnp.arctan2(y, x)
    return length(x, y) - 0.5 - 0.22 * wave(angle * 11 / (2 * jnp.pi)) ** 3


BODIES = {
    "ball": _ball,
    "box": _box,
    "cone": _cone,
    "drum": _drum,
    "bottle": _bottle,
    "ring": _ring,
    "star": _star,
    "moon": _moon,
}
PARTS = {
    "legs": _legs,
    "wheels": _wheels,
    "ears": _ears,
    "antennae": _antennae,
    "wings": _wings,
    "a handle": _handle,
    "a hoop": _hoop,
    "a crown": _crown,
    "a stem": _stem,
    "a pedestal": _pedestal,
    "a tail": _tail,
    "quills": _quills,
}


def _plain(x: Field, y: Field) -> Field:
    return jnp.zeros_like(x)


def _stripes(x: Field, y: Field) -> Field:
    return wave(3.2 * x + 1.2 * y)


def _bands(x: Field, y: Field) -> Field:
    return wave(4.0 * y)


def _spots(x: Field, y: Field) -> Field:
    return jnp.minimum(1.0, 1.6 * wave(3.5 * (x + y)) * wave(3.5 * (x - y)))


def _rings(x: Field, y: Field) -> Field:
    return wave(4.5 * length(x, y))


def _checks(x: Field, y: Field) -> Field:
    return jnp.clip(0.5 + 8.0 * (wave(2.0 * x) - 0.5) * (wave(2.0 * y) - 0.5), 0.0, 1.0)


def _chevrons(x: Field, y: Field) -> Field:
    return wave(3.0 * y + 2.0 * jnp.abs(x))


PATTERNS = (_plain, _stripes, _bands, _spots, _rings, _checks, _chevrons)
