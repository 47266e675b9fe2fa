"""Crops that grow during a run: most steps are then cheap."""

import dataclasses

from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True)
class Phase:
    """A stretch of a run at one size of crop.

    Attributes:
      size: Of the crop, in pixels.
      share: Of the run's steps.
    """

    size: int
    share: float


def parse_phases(text: str, image_size: int) -> tuple[Phase, ...]:
    """Read phases written as ``size:share,...``; the rest is at the full size.

    Args:
      text: For example ``"48:0.5,64:0.3"``; empty means the full size throughout.
      image_size: The full size.

    Returns:
      The phases; their shares add to 1.

    Raises:
      UserError: The text cannot be read, or the shares exceed 1.

    >>> parse_phases("48:0.5,64:0.25", 84)
    (Phase(size=48, share=0.5), Phase(size=64, share=0.25), Phase(size=84, share=0.25))
    """
    phases = []
    for part in filter(None, text.split(",")):
        try:
            size, share = part.split(":")
            phases.append(Phase(int(size), float(share)))
        except ValueError:
            raise UserError(
                f"config.phases has {part!r}: write size:share,..., as in 48:0.5,64:0.3"
            ) from None
    rest = 1.0 - sum(phase.share for phase in phases)
    if any(phase.size < 1 or not phase.share > 0 for phase in phases) or rest < -1e-9:
        raise UserError(
            f"config.phases is {text!r}: sizes and shares must be positive, and the "
            "shares may not add to more than 1"
        )
    if rest > 1e-9:
        phases.append(Phase(image_size, rest))
    return tuple(phases)


def crop_sizes(phases: tuple[Phase, ...], total_steps: int) -> list[int]:
    """List the size of the crops at each step of a run.

    >>> crop_sizes(parse_phases("8:0.5", 16), 4)
    [8, 8, 16, 16]
    """
    sizes: list[int] = []
    end = 0.0
    for phase in phases:
        end += phase.share
        sizes += [phase.size] * (round(end * total_steps) - len(sizes))
    return sizes
