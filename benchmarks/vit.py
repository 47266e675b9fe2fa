"""Images a second of ViT-S/16, beside PyTorch's in the same run.

    python benchmarks/vit.py [--images=16] [--rounds=10] [--size=224] [--dtype=float32]

Needs torch and transformers, whose ViT attends by torch's fused kernel. Both sides have
the same weights, and their features are compared first. Rounds alternate, so that what
else runs on the machine slows both; the ratio is the median of the rounds'.
"""

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Callable

import jax
import numpy as np
import torch
import transformers

from rdc_jax.models import load_model
from rdc_jax.models.preprocessing import FIELD


def main() -> None:
    """Print the rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=16, help="in a batch")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    args = parser.parse_args()

    config = transformers.ViTConfig(
        hidden_size=384, num_attention_heads=6, intermediate_size=1536
    )
    torch.manual_seed(0)
    network = transformers.ViTModel(config, add_pooling_layer=False).eval()
    with tempfile.TemporaryDirectory() as folder:
        network.save_pretrained(folder)
        model = load_model(folder, dtype=args.dtype)
    # Both see the same numbers.
    spec = dataclasses.replace(model.spec, preprocessing=FIELD)
    model = model.replace(spec=spec)
    network = network.to(getattr(torch, args.dtype))

    rng = np.random.default_rng(0)
    shape = (args.images, args.size, args.size, 3)
    images = rng.normal(size=shape).astype(np.float32)
    inputs = torch.tensor(images).permute(0, 3, 1, 2).to(getattr(torch, args.dtype))
    on_device = jax.device_put(images)

    def ours() -> np.ndarray:
        return np.asarray(model(on_device))

    @torch.inference_mode()
    def theirs() -> np.ndarray:
        out = network(inputs, interpolate_pos_encoding=True).last_hidden_state
        return out[:, 0].float().numpy()

    error = np.abs(ours() - theirs()).max() / np.abs(theirs()).max()
    seconds = np.array(
        [[_time(side) for side in (ours, theirs)] for _ in range(args.rounds)]
    )
    rates = args.images / np.median(seconds, axis=0)
    ratio = np.median(seconds[:, 1] / seconds[:, 0])
    print(f"ViT-S/16, {args.size} px, {args.dtype}, {args.images} images a batch")
    print(f"device {jax.devices()[0].device_kind}, torch threads {_threads()}")
    print(f"largest relative difference of features {error:.1e}")
    print(f"rdc_jax {rates[0]:.1f} images/s, torch {rates[1]:.1f}, ratio {ratio:.2f}")


def _time(run: Callable[[], np.ndarray]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _threads() -> int:
    return torch.get_num_threads()


if __name__ == "__main__":
    main()
