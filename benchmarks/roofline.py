"""What programs would take on accelerators at best: computed, not measured.

    python benchmarks/roofline.py

Counts the operations of matrix products and convolutions in the traced programs, and
the bytes that each of them reads and writes if nothing else is fused with it. On a TPU
the last two axes of a product are padded to its tiles. A program takes at least the
longer of operations over peak and bytes over bandwidth. Lists what is slow on an
accelerator whatever its peak: sorts, gathers, scatters, factorisations.
"""

import collections
import functools
import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from evaluate import SPEC, make_options
from jax.extend.core import Jaxpr, JaxprEqn

import rdc_jax
from rdc_jax import models
from rdc_jax.core.batching import inner_jaxprs
from rdc_jax.evaluation import adapting
from rdc_jax.models import weights
from rdc_jax.models.vit import ViT

# TFLOP/s in float32 and in half precision, and TB/s, by the makers' sheets. A TPU makes
# a float32 product of six in bfloat16.
DEVICES = {
    "A100 40 GB": (19.5, 312.0, 1.56),
    "H100 SXM": (67.0, 990.0, 3.35),
    "TPU v5e": (197 / 6, 197.0, 0.82),
}
# A loop until convergence: rounds of the subspace, products of the projector.
ROUNDS, PRODUCTS = 1, 28
SLOW = ("sort", "top_k", "scatter", "gather", "cholesky", "triangular_solve", "eigh")


class Cost(collections.Counter):
    """Operations, the same in padded tiles, bytes; slow operations by name."""


def cost(jaxpr: Jaxpr, times: int = 1) -> Cost:
    """Sum over the equations of a program."""
    total = Cost()
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in ("dot_general", "conv_general_dilated"):
            flops, padded = (_dot if name == "dot_general" else _conv)(eqn)
            arrays = (*eqn.invars, *eqn.outvars)
            moved = sum(v.aval.size * v.aval.dtype.itemsize for v in arrays)
            total.update(flops=times * flops, padded=times * padded)
            total.update(bytes=times * moved)
        elif name.startswith(SLOW):
            total[f"{name} {list(eqn.outvars[0].aval.shape)}"] += times
        inner = list(inner_jaxprs(eqn))
        if name == "cond":  # The last is what is not for the CPU.
            inner = inner[-1:]
        for sub in inner:
            total.update(cost(sub, times * _trips(eqn)))
    return total


def _trips(eqn: JaxprEqn) -> int:
    if eqn.primitive.name == "scan":
        return eqn.params["length"]
    if eqn.primitive.name != "while":
        return 1
    nested = any(e.primitive.name == "while" for e in _all(eqn))
    return ROUNDS if nested else PRODUCTS


def _all(eqn: JaxprEqn) -> Iterator[JaxprEqn]:
    for jaxpr in inner_jaxprs(eqn):
        for inside in jaxpr.eqns:
            yield inside
            yield from _all(inside)


def _dot(eqn: JaxprEqn) -> tuple[int, int]:
    """Operations, and those of tiles of 128 columns and 8 rows."""
    left, right = (v.aval.shape for v in eqn.invars)
    (contract, other), (batch, other_batch) = eqn.params["dimension_numbers"]
    sizes = [
        math.prod(left[i] for i in batch),
        math.prod(left[i] for i in contract),
        math.prod(s for i, s in enumerate(left) if i not in (*contract, *batch)),
        math.prod(s for i, s in enumerate(right) if i not in (*other, *other_batch)),
    ]
    return 2 * math.prod(sizes), 2 * _tiled(*sizes)


def _conv(eqn: JaxprEqn) -> tuple[int, int]:
    """A convolution is a product of pixels with the kernel's patches."""
    kernel = eqn.invars[1].aval.shape
    spec = eqn.params["dimension_numbers"].rhs_spec
    out, channels = eqn.outvars[0].aval.size, kernel[spec[0]]
    patch = math.prod(kernel) // channels
    return 2 * out * patch, 2 * _tiled(1, patch, out // channels, channels)


def _tiled(batch: int, inner: int, rows: int, columns: int) -> int:
    rows, columns = max(rows, columns), min(rows, columns)
    up = lambda size, tile: -(-size // tile) * tile  # noqa: E731
    return batch * up(inner, 128) * up(rows, 8) * up(columns, 128)


def programs() -> Iterator[tuple[str, Jaxpr, bool]]:
    """Name, program, and whether it is in float32."""
    one = functools.partial(rdc_jax.rdc, num_classes=5)
    shapes = [((5, 512), jnp.float32), ((5,), jnp.int32), ((75, 512), jnp.float32)]
    args = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    plain = lambda *args: one(*args).class_distances  # noqa: E731
    yield "RDC, a task (n = 80, d = 512)", jax.make_jaxpr(plain)(*args).jaxpr, True

    options = make_options("rdc_ft")
    model = models.load_backbone(weights.packaged(), conv="xla")
    phase = options.methods[0].method.phases[0]
    task = jax.tree.map(
        lambda x: jnp.zeros(x.shape, x.dtype),
        options.task(SPEC.shot, (84, 84, 3), np.uint8),
    )
    task = task.replace(key=jax.random.key(0))
    step = functools.partial(adapting._first_step, phase)
    jaxpr = jax.make_jaxpr(step)(model, task).jaxpr
    yield "RDC-FT, a step (80 images, 84 px)", jaxpr, True

    vit = ViT(dtype=jnp.bfloat16)
    image = jnp.zeros((1, 224, 224, 3), jnp.bfloat16)
    variables = jax.eval_shape(vit.init, jax.random.key(0), image)
    jaxpr = jax.make_jaxpr(vit.apply)(variables, image).jaxpr
    yield "ViT-S/16 in bfloat16, an image (224 px)", jaxpr, False


def main() -> None:
    """Print a table, and what is slow."""
    rows = []
    for name, jaxpr, single in programs():
        total = cost(jaxpr)
        flops, padded, moved = (total.pop(x) for x in ("flops", "padded", "bytes"))
        line = f"| {name} | {flops / 1e9:.2f} | {padded / flops:.2f} "
        line += f"| {moved / 1e6:.0f} | {flops / moved:.0f} "
        for device, (full, half, band) in DEVICES.items():
            work = (padded if "TPU" in device else flops) / (full if single else half)
            line += f"| {max(work, moved / band) / 1e9:.3f} "
            line += f"({'operations' if work > moved / band else 'bytes'}) "
        print(line + "|")
        rows.append((name, total))
    for name, total in rows:
        print(f"{name}: {dict(total)}")


if __name__ == "__main__":
    main()
