"""A target domain: signs of an invented script, written by hand.

A class is a sign: three curved strokes, drawn without lifting the pen. The hand
(slant, proportions, wobble), pen, ink and paper vary from image to image.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdc_jax.data.synthetic.canvas import (
    Domain,
    Field,
    Picture,
    cover,
    expose,
    grid,
    hsv,
    mix,
    noise,
    segment,
    turn,
)
from rdc_jax.data.synthetic.hash_rng import Seed, bells, fork, uniform, uniforms

SIGNS = 16
STROKES = 3
PIECES = 6  # straight pieces a stroke is drawn with
_PLACES, _BENDS = 2022, 2023  # seeds of the script itself


def sign(label: Int[Array, ""]) -> tuple[Float[Array, "j 2"], Float[Array, " k"]]:
    """The joints at which a sign's strokes meet, and how much each stroke bends."""
    step = uniform(_PLACES, label, np.arange(STROKES + 1))
    # Joints on a lattice of 3 x 3: each step leads to another of the nine places.
    place = jnp.cumsum(1 + jnp.floor(8 * step).astype(jnp.int32)) % 9
    joints = jnp.stack([place % 3, place // 3], axis=1).astype(jnp.float32)
    low, high = joints.min(axis=0), joints.max(axis=0)
    centred = (joints - (low + high) / 2) / jnp.max(high - low)
    return 1.25 * centred, 1.2 * uniform(_BENDS, label, np.arange(STROKES)) - 0.6


def paint(seed: Seed, label: Int[Array, ""], size: int) -> Picture:
    """Write one sign on a piece of paper."""
    hand, wobble, sheet, camera = fork(seed, 4)
    x, y = grid(size)
    style = uniforms(
        hand,
        angle=(-0.3, 0.3),
        slant=(-0.3, 0.3),
        wide=(0.75, 1.25),
        high=(0.8, 1.2),
        at_x=(-0.15, 0.15),
        at_y=(-0.15, 0.15),
        pen=(0.05, 0.12),
    )
    joints, bends = sign(label)
    error = bells(wobble, (2 * STROKES + 1, 2))
    strokes = _strokes(
        joints + 0.08 * error[STROKES:], bends + 0.1 * error[:STROKES, 0]
    )
    u, v = turn(x - style.at_x, y - style.at_y, style.angle)
    ink = (
        _distance((u + style.slant * v) / style.wide, v / style.high, strokes)
        - style.pen
    )
    return expose(camera, _write(sheet, ink), grain=0.02)


def _strokes(
    joints: Float[Array, "j 2"], bends: Float[Array, " k"]
) -> Float[Array, "k p 2"]:
    """Points along each stroke, a quadratic curve from joint to joint."""
    start, end = joints[:-1], joints[1:]
    across = jnp.stack([start[:, 1] - end[:, 1], end[:, 0] - start[:, 0]], axis=1)
    middle = (start + end) / 2 + bends[:, None] * across
    t = np.linspace(0, 1, PIECES + 1, dtype=np.float32)
    weight_p3 = np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2], axis=1)
    return jnp.einsum("pc,ckx->kpx", weight_p3, jnp.stack([start, middle, end]))


def _distance(x: Field, y: Field, strokes: Float[Array, "k p 2"]) -> Field:
    """Distance to the nearest stroke."""
    ends_p4 = jnp.concatenate([strokes[:, :-1], strokes[:, 1:]], axis=2).reshape(-1, 4)

    def nearer(distance: Field, ends: Float[Array, "4"]) -> tuple[Field, None]:
        piece = segment(x, y, (ends[0], ends[1]), (ends[2], ends[3]))
        return jnp.minimum(distance, piece), None

    # A loop, because all distances at once would not stay in the cache.
    return jax.lax.scan(nearer, jnp.full_like(x, 9.0), ends_p4)[0]


def _write(seed: Seed, ink: Field) -> Picture:
    """Ink of one colour on mottled paper; one sheet in three is a dark board."""
    colours, fibre, stain = fork(seed, 3)
    size = ink.shape[0]
    look = uniforms(
        colours,
        hue=(0.05, 0.18),
        paper=(0.75, 0.97),
        tint=(0.03, 0.22),
        ink_hue=(0.0, 1.0),
        dark=(0.05, 0.35),
        strength=(0.8, 1.0),
        kind=(0.0, 1.0),
    )
    chalk = look.kind < 0.33
    board = hsv(look.hue + 0.3, 0.4, 0.3 * look.paper)
    ground = jnp.where(chalk, board, hsv(look.hue, look.tint, look.paper))
    dark = hsv(look.ink_hue, 0.8, look.dark)
    pen = jnp.where(chalk, hsv(look.ink_hue, 0.2, 0.95), dark)
    mottle = 0.04 * noise(stain, size, 3) + 0.02 * noise(fibre, size, 14)
    sheet = ground * (1.0 + mottle[:, :, None])
    return mix(sheet, pen, look.strength * cover(ink, 2.5 / size))


GLYPHS = Domain(tuple(f"sign {i + 1:02d}" for i in range(SIGNS)), paint)
