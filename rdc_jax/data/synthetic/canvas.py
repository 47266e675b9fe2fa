"""What the painters share: coordinates, soft edges, noise, colours, the camera.

A picture is painted over the square from -1 to 1 (x to the right, y down) as float32
fields ``[h, w]`` and colours ``[h, w, 3]``; nothing depends on the resolution but the
sharpness of edges. Shapes are signed distances: negative inside.
"""

import dataclasses
import sys
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdc_jax.data.synthetic.hash_rng import Seed, bells, fork, uniform, uniforms

Field = Float[Array, "h w"]
Picture = Float[Array, "h w 3"]
Colour = Float[Array, "3"]
Value = float | Float[Array, ""]
Point = tuple[Value, Value]


@dataclasses.dataclass(frozen=True)
class Domain:
    """A set of classes and the function that paints one image of one of them.

    Attributes:
      class_names: Name of every class; its index is what ``paint`` takes.
      paint: ``paint(seed, label, size)`` gives colours in 0..1 before clipping.
      splits: The class indices of each split; a target domain has none.
    """

    class_names: tuple[str, ...]
    paint: Callable[[Seed, Int[Array, ""], int], Picture]
    splits: dict[str, tuple[int, ...]] | None = None

    @property
    def about(self) -> str:
        """The first sentence of the file that paints it."""
        text = sys.modules[self.paint.__module__].__doc__ or ""
        return text.splitlines()[0].rstrip(".")


def grid(size: int) -> tuple[Field, Field]:
    """The x and y of every pixel's centre."""
    line = jnp.asarray((np.arange(size) + 0.5) * 2 / size - 1, jnp.float32)
    y, x = jnp.meshgrid(line, line, indexing="ij")
    return x, y


def length(x: Array, y: Array) -> Array:
    """Euclidean length; unlike ``hypot`` without care for overflow."""
    return jnp.sqrt(x * x + y * y)


def turn(x: Array, y: Array, angle: Value) -> tuple[Array, Array]:
    """Coordinates in a frame turned by ``angle``."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return c * x + s * y, c * y - s * x


def wave(x: Array) -> Array:
    """A cosine of period 1 between 0 and 1."""
    return 0.5 + 0.5 * jnp.cos(2 * jnp.pi * x)


def segment(x: Array, y: Array, start: Point, end: Point) -> Array:
    """Distance to the straight line between two points."""
    x, y = x - start[0], y - start[1]
    along_x, along_y = end[0] - start[0], end[1] - start[1]
    share = (x * along_x + y * along_y) / (along_x**2 + along_y**2 + 1e-6)
    share = jnp.clip(share, 0.0, 1.0)
    return length(x - share * along_x, y - share * along_y)


def cover(distance: Field, softness: Value) -> Field:
    """How much of each pixel a shape covers; its edge is ``softness`` wide."""
    return jnp.clip(0.5 - distance / softness, 0.0, 1.0)


def hsv(hue: Value, saturation: Value, value: Value) -> Colour:
    """A colour from its hue (period 1), and saturation and value in 0..1."""
    thirds = np.asarray([0.0, 2 / 3, 1 / 3], np.float32)
    ramp = jnp.abs((hue + thirds) % 1.0 * 6.0 - 3.0) - 1.0
    return value * (1.0 - saturation * (1.0 - jnp.clip(ramp, 0.0, 1.0)))


def mix(
    under: Picture | Colour, over: Picture | Colour, amount: Field | Value
) -> Picture:
    """Paint ``over`` on ``under`` with this opacity."""
    return under + (over - under) * jnp.asarray(amount)[..., None]


def noise(seed: Seed, size: int, bumps: int) -> Field:
    """Smooth noise of about unit deviation with ``bumps`` bumps along an edge."""
    weight_hl = _spline_weights(size, bumps)
    lattice_ll = 2.0 * bells(seed, (bumps + 3, bumps + 3))
    return weight_hl @ lattice_ll @ weight_hl.T


def _spline_weights(size: int, bumps: int) -> Float[np.ndarray, "h l"]:
    """Cubic B-spline basis of a lattice, at the pixels' centres."""
    at = (np.arange(size) + 0.5) * bumps / size
    t = np.abs(at[:, None] + 1 - np.arange(bumps + 3)[None, :])
    near, far = 2 / 3 - t**2 + t**3 / 2, np.maximum(2 - t, 0) ** 3 / 6
    return np.where(t < 1, near, far).astype(np.float32)


def cells(
    seed: Seed, u: Field, v: Field, *, order: Value = 0.0
) -> tuple[Field, Field, Field]:
    """Voronoi cells of one point in each unit square; ``order=1`` is a lattice.

    Returns:
      Distance to the nearest point, to the second nearest, and a number in 0..1 that
      is constant in each cell.
    """
    column, row = jnp.floor(u), jnp.floor(v)
    first, second = jnp.full_like(u, 9.0), jnp.full_like(u, 9.0)
    tone = jnp.zeros_like(u)
    for i, j in [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]:
        code = uniform(seed, column + i, row + j)
        # One hash gives two offsets and a tone: its leading and its later bits.
        at_u = column + i + 0.5 + (1 - order) * (code - 0.5)
        at_v = row + j + 0.5 + (1 - order) * (code * 64.0 % 1.0 - 0.5)
        away = length(u - at_u, v - at_v)
        tone = jnp.where(away < first, code * 4096.0 % 1.0, tone)
        second = jnp.minimum(second, jnp.maximum(first, away))
        first = jnp.minimum(first, away)
    return first, second, tone


def relief(height: Field, light: Value, strength: Value) -> Field:
    """Brightness of a surface lit from direction ``light``; 0 where it is level."""
    down, right = jnp.gradient(height, 2.0 / height.shape[0])
    return -strength * (jnp.cos(light) * right + jnp.sin(light) * down)


def expose(seed: Seed, picture: Picture, *, grain: float) -> Picture:
    """A camera's exposure, haze, colour cast and sensor noise."""
    settings, sensor = fork(seed, 2)
    camera = uniforms(
        settings,
        gain=(0.8, 1.15),
        red=(0.93, 1.07),
        blue=(0.93, 1.07),
        haze=(0.0, 0.12),
    )
    cast = jnp.stack([camera.red, jnp.ones_like(camera.red), camera.blue])
    hazy = camera.haze + (1 - camera.haze) * camera.gain * cast * picture
    return hazy + grain * bells(sensor, picture.shape)
