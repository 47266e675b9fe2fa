"""Images a second of the training step, beside PyTorch.

    python benchmarks/train.py [--sizes=84,224] [--rounds=5] [--threads=2]

One step is forward, backward and Adam of ResNet10 with a 64-class head on a batch of
64, batch statistics on. PyTorch runs channels last, its fast layout on CPU. Both see
the same batch, in turns; the table has the median round and the ratio. Needs the
extra [torch].
"""

import argparse
import functools
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch

from rdc_jax import models
from rdc_jax.models.heads import Classifier

# The reference network of the parity tests.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from models.torch_reference import Classifier as TorchClassifier

BATCH, CLASSES = 64, 64


def torch_stepper(images: np.ndarray, labels: np.ndarray):
    """A function that makes one step in PyTorch and returns the loss."""
    network = TorchClassifier(CLASSES).train().to(memory_format=torch.channels_last)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    x = x.contiguous(memory_format=torch.channels_last)
    y = torch.from_numpy(labels)

    def step() -> float:
        optimiser.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(network(x), y)
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def jax_stepper(images: np.ndarray, labels: np.ndarray, conv: str):
    """The same with the package's network; compiled on the first call."""
    model = Classifier(models.create("resnet10", conv=conv), CLASSES)
    images, labels = jnp.asarray(images), jnp.asarray(labels)
    variables = jax.jit(model.init)(jax.random.key(0), images)
    adam = optax.adam(1e-3)

    # The old state's memory takes the new one, as in the package's own loop.
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(variables, opt_state, images, labels):
        def loss_fn(params):
            (logits, _), new = model.apply(
                {**variables, "params": params},
                images,
                train=True,
                mutable=["batch_stats"],
            )
            each = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return each.mean(), new["batch_stats"]

        (loss, stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(
            variables["params"]
        )
        updates, opt_state = adam.update(grads, opt_state)
        params = optax.apply_updates(variables["params"], updates)
        return {"params": params, "batch_stats": stats}, opt_state, loss

    state = [variables, adam.init(variables["params"])]

    def step() -> float:
        *state[:], loss = update(*state, images, labels)
        return float(loss)

    return step


def compare(size: int, rounds: int, steps: int) -> None:
    """Time all in turns and print a line for each."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((BATCH, size, size, 3), np.float32)
    labels = rng.integers(0, CLASSES, BATCH)
    steppers = {
        "torch": torch_stepper(images, labels),
        "rdc_jax": jax_stepper(images, labels, "auto"),
        "rdc_jax, conv=xla": jax_stepper(images, labels, "xla"),
    }
    for step in steppers.values():
        step()
    rates: dict[str, list[float]] = {name: [] for name in steppers}
    for _ in range(rounds):
        for name, step in steppers.items():
            start = time.perf_counter()
            for _ in range(steps):
                step()
            rates[name].append(BATCH * steps / (time.perf_counter() - start))
    for name, values in rates.items():
        ratios = np.array(values) / np.array(rates["torch"])
        print(
            f"{size:4d} px  {name:18s} {np.median(values):7.1f} images/s  "
            f"{np.median(ratios):5.2f}x torch "
            f"(rounds: {', '.join(f'{r:.2f}' for r in ratios)})",
            flush=True,
        )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="84,224")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for size in map(int, args.sizes.split(",")):
        compare(size, args.rounds, steps=max(1, 84 * 84 * 3 // size**2))


if __name__ == "__main__":
    main()
