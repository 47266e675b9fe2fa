"""A target domain: land seen from above.

A class is a use or form of the land ("orchard", "river"). Direction, scale, layout,
season, haze and the colours of soil, plants, water and roofs vary from image to image.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from rdc_jax.data.synthetic.canvas import (
    Colour,
    Domain,
    Field,
    Picture,
    Value,
    cells,
    cover,
    expose,
    grid,
    hsv,
    length,
    mix,
    noise,
    turn,
    wave,
)
from rdc_jax.data.synthetic.hash_rng import Seed, fork, uniform, uniforms


class Land(NamedTuple):
    """What a land form is painted from."""

    u: Field  # coordinates, about -2 to 2
    v: Field
    hills: Field  # smooth noise
    crowns: Field  # distance to the nearest of many small scattered points
    lots: Seed  # random numbers of lattice squares
    sharp: Value  # width of a clean edge
    grass: Colour
    wood: Colour
    soil: Colour
    water: Colour
    road: Colour
    roof: Colour


def _square(land: Land, rate: float) -> tuple[Field, Field, Field]:
    """Coordinates from the centre of a lattice square, and its random number."""
    u, v = land.u * rate, land.v * rate
    column, row = jnp.floor(u), jnp.floor(v)
    return u - column - 0.5, v - row - 0.5, uniform(land.lots, column, row)


def _rough(land: Land, colour: Colour, amount: float = 0.08) -> Picture:
    """Open ground of one colour, mottled."""
    return colour * (1.0 + amount * land.hills)[:, :, None]


def _mead(land: Land, near: float) -> Picture:
    """Grass with groups of trees."""
    return mix(_rough(land, land.grass), land.wood, cover(land.crowns - near, 0.2))


def _flood(land: Land, picture: Picture, shore: Field, beach: float) -> Picture:
    """Water where ``shore`` is negative, with a beach around it."""
    picture = mix(picture, land.soil, cover(shore - beach, 0.1))
    return mix(picture, _rough(land, land.water, 0.03), cover(shore, land.sharp))


def _fields(land: Land) -> Picture:
    column = jnp.floor(0.9 * land.u)
    du, dv = 0.9 * land.u - column - 0.5, 1.4 * land.v + 0.37 * column
    tone = uniform(land.lots, column, jnp.floor(dv))
    picture = mix(land.soil, land.grass, jnp.clip(2.4 * tone - 0.7, 0.0, 1.0))
    furrows = 0.08 * wave(jnp.where(tone * 8 % 1 < 0.5, 4 * land.u, 5 * land.v))
    hedge = jnp.maximum(jnp.abs(du), jnp.abs(dv % 1.0 - 0.5)) - 0.46
    picture = picture * (0.85 + 0.3 * (tone * 32 % 1) - furrows)[:, :, None]
    return mix(picture, land.wood, 0.8 * cover(-hedge, land.sharp))


def _orchard(land: Land) -> Picture:
    du, dv, tone = _square(land, 3.0)
    trees = cover(length(du, dv) - 0.24 - 0.1 * tone, 3 * land.sharp)
    return mix(
        _rough(land, land.soil + (land.grass - land.soil) * 0.6), land.wood, trees
    )


def _forest(land: Land) -> Picture:
    light = 0.7 + 0.8 * (0.6 - land.crowns) + 0.12 * land.hills
    return land.wood * light[:, :, None]


def _river(land: Land) -> Picture:
    bank = jnp.abs(land.v + 0.5 * jnp.sin(1.6 * land.u) + 0.15 * land.hills) - 0.3
    return _flood(land, _mead(land, 0.25), bank, 0.09)


def _lake(land: Land) -> Picture:
    shore = length(land.u, 1.3 * land.v) - 1.05 + 0.3 * land.hills
    return _flood(land, _mead(land, 0.3), shore, 0.08)


def _coast(land: Land) -> Picture:
    shore = land.v + 0.25 * land.hills
    picture = mix(_rough(land, land.grass), land.soil * 1.25, cover(shore - 0.55, 0.3))
    surf = 0.7 * wave(1.6 * shore) ** 6 * cover(shore, 0.1) * cover(-shore - 1.0, 0.8)
    sea = mix(_rough(land, land.water, 0.04), hsv(0.0, 0.0, 1.0), surf)
    return mix(picture, sea, cover(shore, 2 * land.sharp))


def _town(land: Land) -> Picture:
    du, dv, tone = _square(land, 2.2)
    block = jnp.maximum(jnp.abs(du), jnp.abs(dv)) - 0.36
    roofs = (
        mix(land.roof, land.road * 1.3, tone)
        * (0.75 + 0.5 * (tone * 16 % 1))[:, :, None]
    )
    picture = mix(land.road, roofs, cover(block, 2 * land.sharp))
    shade = cover(jnp.abs(jnp.maximum(du, dv) - 0.36) - 0.05, land.sharp)
    return picture * (1.0 - 0.35 * shade)[:, :, None]


def _suburb(land: Land) -> Picture:
    du, dv, tone = _square(land, 1.8)
    house = jnp.maximum(jnp.abs(du - 0.3 * tone + 0.15), jnp.abs(dv)) - 0.16
    lane = jnp.abs((0.9 * land.v) % 1.0 - 0.5) - 0.06
    picture = mix(_mead(land, 0.28), land.road * 1.2, cover(lane, land.sharp))
    return mix(picture, land.roof * 1.1, cover(house, 2 * land.sharp))


def _motorway(land: Land) -> Picture:
    off = land.v + 0.12 * land.u**2
    picture = mix(_rough(land, land.grass), land.soil, cover(0.4 - land.hills, 0.6))
    picture = mix(
        picture, land.road, cover(jnp.abs(jnp.abs(off) - 0.2) - 0.14, land.sharp)
    )
    lanes = cover(jnp.abs(jnp.abs(off) - 0.2) - 0.015, land.sharp) * (
        wave(3 * land.u) > 0.5
    )
    crossing = cover(jnp.abs(land.u + 0.6) - 0.07, land.sharp)
    return mix(
        mix(picture, hsv(0.0, 0.0, 1.0), 0.7 * lanes), land.road * 1.25, crossing
    )


def _works(land: Land) -> Picture:
    du, dv, tone = _square(land, 0.95)
    hall = jnp.maximum(
        jnp.abs(du) - 0.2 - 0.2 * tone, jnp.abs(dv) - 0.22 - 0.16 * (tone * 8 % 1)
    )
    roofs = (0.62 + 0.33 * (tone * 64 % 1) + 0.08 * wave(6 * land.u))[:, :, None]
    yard = _rough(land, land.road + (land.soil - land.road) * 0.35, 0.1)
    return mix(yard, roofs * hsv(0.6, 0.08, 1.04), cover(hall, 2 * land.sharp))


def _pivots(land: Land) -> Picture:
    du, dv, tone = _square(land, 1.0)
    disc = length(du, dv) - 0.44
    crop = (
        mix(land.wood, land.grass * 1.15, tone)
        * (1 - 0.15 * wave(9 * disc))[:, :, None]
    )
    sector = jnp.where((du * (tone - 0.5) + dv * 0.4 > 0) & (tone > 0.6), 0.5, 1.0)
    return mix(
        _rough(land, land.soil * 1.1), crop, sector * cover(disc, 2 * land.sharp)
    )


def _terraces(land: Land) -> Picture:
    level = 1.3 * land.hills + 0.5 * land.v
    picture = mix(land.grass, land.wood, wave(0.5 * level))
    return picture * (1.08 - 0.5 * wave(2.2 * level) ** 3)[:, :, None]


_FORMS = (
    *(_fields, _orchard, _forest, _river, _lake, _coast),
    *(_town, _suburb, _motorway, _works, _pivots, _terraces),
)


def paint(seed: Seed, label: Int[Array, ""], size: int) -> Picture:
    """Paint one square of land of form ``label``."""
    survey, camera = fork(seed, 2)
    land = _survey(survey, size)
    return expose(camera, jax.lax.switch(label, _FORMS, land), grain=0.02)


def _survey(seed: Seed, size: int) -> Land:
    """Lay out one square of land in one season."""
    plan, weather, coarse, fine, points, lots = fork(seed, 6)
    x, y = grid(size)
    layout = uniforms(
        plan,
        angle=(-3.14, 3.14),
        scale=(1.2, 1.9),
        at_u=(-0.3, 0.3),
        at_v=(-0.3, 0.3),
    )
    season = uniforms(
        weather,
        dry=(0.0, 1.0),
        green=(0.3, 0.55),
        clay=(0.05, 0.13),
        deep=(0.1, 0.5),
        tile=(0.0, 0.14),
    )
    u, v = turn(x, y, layout.angle)
    u, v = layout.scale * u + layout.at_u, layout.scale * v + layout.at_v
    crowns, _, _ = cells(points, 4.5 * u, 4.5 * v)
    return Land(
        u=u,
        v=v,
        hills=noise(coarse, size, 3) + 0.35 * noise(fine, size, 9),
        crowns=crowns,
        lots=lots,
        sharp=3.0 * layout.scale / size,
        grass=hsv(0.3 - 0.14 * season.dry, 0.45, season.green + 0.15 * season.dry),
        wood=hsv(0.36 - 0.12 * season.dry, 0.5, 0.55 * season.green),
        soil=hsv(season.clay, 0.35, 0.55 + 0.1 * season.dry),
        water=hsv(0.52 + 0.1 * season.deep, 0.6, 0.2 + 0.4 * season.deep),
        road=hsv(0.6, 0.05, 0.42 + 0.1 * season.dry),
        roof=hsv(season.tile, 0.45, 0.6),
    )


TILES = Domain(tuple(form.__name__.removeprefix("_") for form in _FORMS), paint)
