"""Evaluation end to end: RDC over cached features, RDC-FT beside PyTorch.

    python benchmarks/evaluate.py rdc [--episodes=2000] [--devices=2]
    python benchmarks/evaluate.py finetune [--tasks=3] [--steps=20] [--devices=2]

``rdc`` runs the evaluation program's engine over features that are there already, with
NPC, RDC and the diagnostics, ledger included. ``finetune`` trains ResNet10 on tasks of
80 images of 84 pixels, and lets a plain PyTorch RDC-FT do the same in turns: channels
last, targets by ``benchmarks/rivals.py``'s iteration; it needs torch. Both take
``--batch_norm`` as of ``config.finetune``, and ``--layers=block4``, which trains these
alone: PyTorch computes no gradient below them.
"""

import argparse
import pathlib
import sys
import tempfile
import time
import types

import jax
import numpy as np

from rdc_jax import models
from rdc_jax.configs.eval import variation
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import TaskSampler
from rdc_jax.evaluation.adapting import AdaptationScorer
from rdc_jax.evaluation.datasets import DataSet
from rdc_jax.evaluation.engine import Engine
from rdc_jax.evaluation.ledger import Ledger, Stage
from rdc_jax.evaluation.options import Options
from rdc_jax.evaluation.scoring import FeatureScorer
from rdc_jax.models import weights
from rdc_jax.runtime.threads import one_lapack_thread

SPEC = TaskSpec(way=5, shot=1, query=15)
SIZE = 84


class InMemory(DataSet):
    """Features or images that are there already."""

    def __init__(self, options: Options, rows: np.ndarray, labels: np.ndarray) -> None:
        self._options, self._rows, self.name = options, rows, "benchmark"
        sampler = TaskSampler(labels, SPEC, seed=0, dataset=self.name)
        self.samplers = {SPEC.shot: sampler}

    @property
    def pixels(self):
        """Images in the place of a cache of them."""
        return (types.SimpleNamespace(images=self._rows),)

    def features(self, model, inputs):
        """As they are, whatever the model."""
        return self._rows


def make_options(methods: str, **fields) -> Options:
    """The paper's protocol at 84 pixels, 1-shot."""
    fields = {"checkpoint": "x", "image_size": SIZE, "shots": "1", **fields}
    return Options.from_config(
        variation("paper", {"methods": methods, **fields}).to_dict()
    )


def rdc(episodes: int) -> None:
    """Tasks a second from features to the ledger, compilation apart."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 60).astype(np.int32)
    centre = rng.standard_normal((20, 512), np.float32)
    noise = rng.standard_normal((len(labels), 512), np.float32)
    features = np.maximum(centre[labels] + 1.5 * noise - 0.5, 0)
    options = make_options("npc,npc_l2,rdc_one_space,rdc")
    scorer = FeatureScorer(
        name="features",
        entries=options.methods,
        model=models.load_backbone(weights.packaged()),
        options=options,
    )
    engine = Engine()
    count = scorer.counter(engine, InMemory(options, features, labels), SPEC.shot)
    chunks = engine.run(
        count,
        range(episodes),
        max_batch=scorer.max_batch(SPEC.shot, episodes),
        prefetch=scorer.prefetch,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "ledger.jsonl"
        with Ledger(path, {"config": {}}) as ledger:
            start = time.perf_counter()
            for judged in chunks:
                ledger.append(Stage("benchmark", 1, "features"), judged.counts)
            seconds = time.perf_counter() - start - engine.compiling
    names = ", ".join(entry.name for entry in scorer.entries)
    print(
        f"{names} and diagnostics: {episodes} tasks at "
        f"{episodes / seconds:.0f}/s; compiled in {engine.compiling:.1f} s"
    )


def finetune(tasks: int, steps: int, batch_norm: str, layers: str) -> None:
    """Seconds a task of RDC-FT, ours and PyTorch's in turns."""
    rng = np.random.default_rng(0)
    side = SIZE * 96 // 84
    images = rng.integers(0, 256, (200, side, side, 3), np.uint8)
    labels = np.repeat(np.arange(10), 20).astype(np.int32)
    sampler = TaskSampler(labels, SPEC, seed=0, dataset="benchmark")
    ours = _ours(images, steps, batch_norm, layers)
    theirs = _theirs(images, sampler, steps, batch_norm, layers)
    ours(0)  # Compiles.
    pairs = [
        (_timed(ours, task) / jax.device_count(), _timed(theirs, task))
        for task in range(tasks)
    ]
    for mine, other in pairs:
        print(
            f"rdc_jax {mine:.1f} s a task, PyTorch {other:.1f} s: {other / mine:.2f}x"
        )
    print(f"median ratio {np.median([other / mine for mine, other in pairs]):.2f}x")


def _ours(images: np.ndarray, steps: int, batch_norm: str, layers: str):
    fields = {"steps": steps, "batch_norm": batch_norm, "layers": layers}
    of_group = {f"finetune.{name}": value for name, value in fields.items()}
    options = make_options("rdc_ft", **of_group)
    scorer = AdaptationScorer(
        entry=options.methods[0],
        model=models.load_backbone(weights.packaged()),
        options=options,
    )
    engine, at_once = Engine(), jax.device_count()
    dataset = InMemory(options, images, np.repeat(np.arange(10), 20).astype(np.int32))
    count = scorer.counter(engine, dataset, SPEC.shot)

    def run(task: int) -> None:
        tasks = range(task * at_once, (task + 1) * at_once)
        list(engine.run(count, tasks, max_batch=1))

    return run


def _theirs(
    images: np.ndarray, sampler: TaskSampler, steps: int, batch_norm: str, layers: str
):
    import torch
    from rivals import torch_distances
    from torch.nn.functional import log_softmax, normalize

    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
    from models.torch_reference import Feature

    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    margin = (images.shape[1] - SIZE) // 2

    def train(task: int) -> None:
        drawn = sampler(range(task, task + 1))
        label_s = torch.from_numpy(drawn.labels[0][: SPEC.support_size])
        x = torch.from_numpy(images[drawn.indices[0]]).permute(0, 3, 1, 2) / 255
        x = ((x - mean) / std)[:, :, margin : margin + SIZE, margin : margin + SIZE]
        x = x.contiguous(memory_format=torch.channels_last)
        network = Feature().to(memory_format=torch.channels_last)
        network.train(batch_norm == "updated")
        for place, part in enumerate(network.trunk):
            if layers and f"block{place - 3}" not in layers.split(","):
                part.eval().requires_grad_(False)
        trained = [weight for weight in network.parameters() if weight.requires_grad]
        adam = torch.optim.Adam(trained, lr=1e-3)
        off = ~torch.eye(len(x), dtype=torch.bool)
        for _ in range(steps):
            feat = network(x)
            goal = torch_distances(feat.detach()[None], label_s, iterate=True)[0]
            unit = normalize(feat)
            dist = (2 - 2 * unit @ unit.T).clamp_min(1e-12).sqrt()
            log_p, log_q = (
                log_softmax(torch.where(off, -d / 3.0, -torch.inf), dim=1)[off]
                for d in (goal, dist)
            )
            loss = 9 * (log_p.exp() * (log_p - log_q)).sum() / len(x)
            adam.zero_grad()
            loss.backward()
            adam.step()

    return train


def _timed(fn, task: int) -> float:
    start = time.perf_counter()
    fn(task)
    return time.perf_counter() - start


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("rdc", "finetune"))
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--devices", type=int, default=1, help="CPU devices")
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument(
        "--batch_norm", choices=("updated", "running"), default="updated"
    )
    parser.add_argument("--layers", default="", help="as config.finetune.layers")
    args = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", args.devices)
    with one_lapack_thread():
        if args.what == "rdc":
            return rdc(args.episodes)
        finetune(args.tasks, args.steps, args.batch_norm, args.layers)


if __name__ == "__main__":
    main()
