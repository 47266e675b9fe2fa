"""Matching networks, by a head that was trained for it."""

from rdc_jax.methods.base import register
from rdc_jax.methods.heads import HeadMethod


@register("matching")
class MatchingMethod(HeadMethod):
    """Votes of the supports by cosines, of embeddings in the supports' context."""

    title = "MatchingNet"
    transductive = False
    head = "matching"
