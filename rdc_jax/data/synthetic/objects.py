"""The source domain: things with a body and attached parts, photographed.

A class is a pair of body and parts ("cone with wheels"), with its own surface pattern
and usual colour. Pose, size, proportions, light, colours, background and clutter vary
from image to image. Every body and every kind of parts occurs in each split.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from rdc_jax.data.synthetic.canvas import (
    Colour,
    Domain,
    Field,
    Picture,
    Point,
    Value,
    cover,
    expose,
    grid,
    hsv,
    length,
    mix,
    noise,
    relief,
    segment,
    turn,
    wave,
)
from rdc_jax.data.synthetic.hash_rng import Seed, fork, uniforms

Shape = Callable[[Field, Field], Field]

# Bodies and parts are signed distances in the thing's own coordinates, in which a body
# is about one unit across; patterns are the darkness of a body's surface, 0 to 1.


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


def paint(seed: Seed, label: Int[Array, ""], size: int) -> Picture:
    """Paint one thing of class ``label``."""
    pose, look, scene, camera = fork(seed, 4)
    x, y = grid(size)
    u, v, scale = _place(pose, x, y)
    body = scale * jax.lax.switch(label // len(PARTS), tuple(BODIES.values()), u, v)
    parts = scale * jax.lax.switch(label % len(PARTS), tuple(PARTS.values()), u, v)
    pattern = jax.lax.switch(label * 5 % len(PATTERNS), PATTERNS, u, v)
    picture = _thing(look, label, _background(scene, x, y), body, parts, pattern)
    return expose(camera, picture, grain=0.02)


def _place(seed: Seed, x: Field, y: Field) -> tuple[Field, Field, Value]:
    """Coordinates on the thing, and its scale."""
    pose = uniforms(
        seed,
        angle=(-0.6, 0.6),
        scale=(0.75, 1.3),
        stretch=(-0.25, 0.25),
        at_x=(-0.22, 0.22),
        at_y=(-0.18, 0.18),
        side=(-1.0, 1.0),
    )
    u, v = turn(x - pose.at_x, y - pose.at_y, pose.angle)
    wide = jnp.sign(pose.side) * jnp.exp(pose.stretch)
    return wide * u / pose.scale, v / pose.scale, pose.scale


def _background(seed: Seed, x: Field, y: Field) -> Picture:
    """A blurred scene: two colours and a horizon, some clutter, mottled."""
    colours, clutter, near, far = fork(seed, 4)
    view = uniforms(
        colours,
        hue=(0.0, 1.0),
        drift=(-0.25, 0.25),
        saturation=(0.05, 0.45),
        high=(0.4, 0.95),
        low=(0.25, 0.7),
        angle=(-0.5, 0.5),
        edge=(-0.5, 0.7),
        blur=(0.05, 1.2),
    )
    _, down = turn(x, y, view.angle)
    sky = hsv(view.hue, view.saturation, view.high)
    floor = hsv(view.hue + view.drift, view.saturation, view.low)
    picture = mix(sky, floor, cover(view.edge - down, view.blur))
    for piece in fork(clutter, 3):
        picture = _clutter(piece, picture, x, y)
    size = x.shape[0]
    mottle = 0.07 * noise(far, size, 4) + 0.04 * noise(near, size, 11)
    return picture * (1.0 + mottle[:, :, None])


def _clutter(seed: Seed, picture: Picture, x: Field, y: Field) -> Picture:
    """A pale, blurred ellipse or box somewhere behind."""
    piece = uniforms(
        seed,
        at_x=(-1.1, 1.1),
        at_y=(-1.1, 1.1),
        angle=(-1.6, 1.6),
        wide=(0.1, 0.5),
        high=(0.1, 0.4),
        corner=(0.0, 1.0),
        hue=(0.0, 1.0),
        value=(0.2, 0.9),
        blur=(0.05, 0.3),
        opacity=(0.2, 0.8),
    )
    u, v = turn(x - piece.at_x, y - piece.at_y, piece.angle)
    u, v = jnp.abs(u / piece.wide), jnp.abs(v / piece.high)
    shape = jnp.where(piece.corner < 0.5, length(u, v), jnp.maximum(u, v))
    amount = piece.opacity * cover((shape - 1.0) * piece.high, piece.blur)
    return mix(picture, hsv(piece.hue, 0.35, piece.value), amount)


def _thing(
    seed: Seed,
    label: Int[Array, ""],
    picture: Picture,
    body: Field,
    parts: Field,
    pattern: Field,
) -> Picture:
    """Put the thing, in its colours and shaded, in front of the background."""
    look = uniforms(
        seed,
        shift=(-0.06, 0.06),
        own=(0.0, 1.0),
        saturation=(0.35, 0.9),
        value=(0.55, 0.95),
        light=(-2.6, -0.6),
        shine=(0.2, 0.6),
        ink=(0.4, 0.8),
    )
    # Most images show the class's own colour; every fourth is of any colour.
    hue = jnp.where(look.own < 0.25, 4 * look.own, label * 0.618 + look.shift)
    edge = 2.5 / picture.shape[0]
    shadow = 0.45 * cover(jnp.minimum(body, parts) - 0.02, 0.22)
    picture = picture * (1 - shadow)[:, :, None]
    colour = hsv(hue + 0.42, look.saturation, 0.75 * look.value)
    limbs = _shade(colour, parts, look.light, look.shine)
    picture = mix(picture, limbs, cover(parts, edge))
    colour = hsv(hue, look.saturation, look.value)
    skin = _shade(colour, body, look.light, look.shine)
    skin = skin * (1 - look.ink * pattern)[:, :, None]
    return mix(picture, skin, cover(body, edge))


def _shade(colour: Colour, distance: Field, light: Value, shine: Value) -> Picture:
    """Round the shape off towards its edge, lit from one side."""
    depth = jnp.clip(-distance / 0.3, 0.0, 1.0)
    height = 0.3 * jnp.sqrt(1e-3 + depth * (2 - depth))
    lit = 1.0 + jnp.clip(relief(height, light, 0.55), -0.6, 0.5)
    gloss = shine * jnp.clip(relief(height, light, 0.8) - 0.4, 0.0, 0.6)
    return colour * lit[:, :, None] + gloss[:, :, None]


def _splits() -> dict[str, tuple[int, ...]]:
    """16 classes for validation and 16 for test, along diagonals of the table."""
    diagonal = {
        b * len(PARTS) + p: (5 * b + p) % len(PARTS)
        for b in range(len(BODIES))
        for p in range(len(PARTS))
    }
    held_out = {"val": (0, 6), "test": (3, 9)}
    splits = {
        split: tuple(label for label, d in diagonal.items() if d in taken)
        for split, taken in held_out.items()
    }
    rest = set(diagonal) - set(splits["val"]) - set(splits["test"])
    return {"train": tuple(sorted(rest)), **splits}


NAMES = tuple(f"{body} with {part}" for body in BODIES for part in PARTS)
OBJECTS = Domain(NAMES, paint, _splits())
