"""Adapting gives the same counts however the tasks are divided and driven."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from evaluation.worlds import PARAMS
from jax import export
from PIL import Image

from rdc_jax import methods, models
from rdc_jax.configs import eval as eval_config
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.pixels import PixelCache
from rdc_jax.data.squares import Square
from rdc_jax.evaluation import datasets
from rdc_jax.evaluation.adapting import AdaptationScorer
from rdc_jax.evaluation.datasets import DataSet
from rdc_jax.evaluation.engine import Engine
from rdc_jax.evaluation.options import Entry, Options
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.models.model import wrap
from rdc_jax.runtime.errors import UserError

TASKS = 9
NETWORK = tiny.TinyNet()
FINETUNE = FinetuneOptions(steps=3, learning_rate=1e-2, record=(1,), augment=True)


@pytest.fixture(scope="module")
def options():
    config = eval_config.get_config("test")
    config.update(
        checkpoint="x", image_size=tiny.SIZE, way=4, shots="1", query=4, methods="npc"
    )
    return Options.from_config(config.to_dict())


@pytest.fixture(scope="module")
def dataset(options, tmp_path_factory):
    rng = np.random.default_rng(0)
    labels_n = np.repeat(np.arange(5), 8).astype(np.int32)
    colour = rng.integers(60, 190, (5, 1, 1, 3))[labels_n]
    noise = rng.integers(-100, 100, (len(labels_n), 18, 18, 3))
    pixels = (colour + noise).clip(0, 255).astype(np.uint8)
    images = ImageSet(
        name="world",
        split="test",
        ids=[str(i) for i in range(len(labels_n))],
        labels=labels_n,
        class_names=tuple("abcde"),
        read=lambda i: Image.fromarray(pixels[i]),
        identity="world",
    )
    return DataSet(images, options, Square(18), tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def model():
    shape = jnp.zeros((1, tiny.SIZE, tiny.SIZE, 3))
    return wrap(NETWORK, jax.jit(NETWORK.init)(jax.random.key(0), shape))


def make(name, model, options, **changes):
    finetune = dataclasses.replace(FINETUNE, **changes)
    groups = {"rdc": PARAMS, "finetune": finetune, "image_size": tiny.SIZE}
    entry = Entry(name, methods.get_method(name, **groups))
    return AdaptationScorer(entry=entry, model=model, options=options)


def run(scorer, dataset, engine, tasks=TASKS):
    counter = scorer.counter(engine, dataset, 1)
    max_batch = scorer.max_batch(1, tasks)
    chunks = engine.run(counter, range(tasks), max_batch=max_batch)
    return np.concatenate([judged.counts for judged in chunks])


@pytest.fixture(scope="module")
def whole(model, options, dataset):
    engine = Engine(devices=jax.devices()[:1])
    return run(make("rdc_ft", model, options), dataset, engine)


def test_counts_are_those_of_one_task_by_itself(model, options, dataset, whole):
    scorer, number = make("rdc_ft", model, options), 5
    assert scorer.columns == ("rdc_ft@1", "rdc_ft")
    made, s = dataset.samplers[1](range(number, number + 1)), 4
    images = jnp.asarray(dataset.pictures(made.indices[0]))
    task = methods.Task(
        *(images[:s], made.labels[0, :s], images[s:]),
        num_classes=4,
        key=jax.random.fold_in(jax.random.key(0), number),
    )
    dist_qc = jax.jit(scorer.method)(task, model)
    right = (dist_qc.argmin(axis=1) == made.labels[0, s:]).sum()
    assert right == whole[number, 1]
    assert whole.min() > 0 and whole.max() <= 16


@pytest.mark.parametrize(
    ("devices", "chunk", "loop"),
    [
        (2, 0, "python"),
        (1, 7, "python"),
        (1, TASKS, "compiled"),
        (2, 2, "compiled"),
        pytest.param(8, 0, "python", marks=pytest.mark.devices8),
        pytest.param(8, 8, "compiled", marks=pytest.mark.devices8),
    ],
)
def test_chunks_devices_and_loops_change_no_prediction(
    model, options, dataset, whole, devices, chunk, loop
):
    engine = Engine(chunk=chunk, devices=jax.devices()[:devices])
    scorer = make("rdc_ft", model, options, loop=loop)
    np.testing.assert_array_equal(run(scorer, dataset, engine), whole)


def test_a_cpu_takes_one_task_a_device_and_others_what_fits(model, options):
    scorer = make("rdc_ft", model, options)
    assert scorer.max_batch(1, 1000) == 1
    few, many = (scorer.fitting(1, 1000, budget=mib << 20) for mib in (16, 64))
    assert 1 <= few < many < 1000
    assert many == pytest.approx(4 * few, rel=0.5)


@pytest.mark.parametrize(
    "name", ["finetune", "finetune_linear", "rdc_da", "rdc_ft_one_space"]
)
def test_every_method_that_trains_can_be_evaluated(model, options, dataset, name):
    engine = Engine(chunk=4, devices=jax.devices()[:1])
    counts = run(make(name, model, options), dataset, engine, tasks=4)
    assert counts.shape == (4, 2)
    assert 0 < counts.mean() <= 16


@pytest.mark.parametrize("name", ["rdc_ft", "rdc_ft_mse"])
def test_a_step_over_tasks_lowers_for_accelerators(name, options):
    network = models.create("resnet10", conv="xla")
    variables = jax.eval_shape(
        network.init, jax.random.key(0), jnp.zeros((1, 32, 32, 3))
    )
    method = methods.get_method(name, finetune=FINETUNE, rdc=PARAMS, image_size=32)
    task = options.task(1, (36, 36, 3), np.uint8)
    key = jax.eval_shape(lambda: jax.random.key(0))
    shapes = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype),
        task.replace(key=key),
    )
    # Shapes alone are no pytree that export can write down: weights as leaves.
    model = wrap(network, variables)
    leaves, tree = jax.tree.flatten(model)
    tasks, task_tree = jax.tree.flatten(shapes)

    def mapped(leaves, tasks):
        one = jax.tree.unflatten(tree, leaves)
        return jax.vmap(method, (0, None))(jax.tree.unflatten(task_tree, tasks), one)

    exported = export.export(jax.jit(mapped), platforms=["cuda", "tpu"])(leaves, tasks)
    assert set(exported.platforms) == {"cuda", "tpu"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counting(methods.Adaptation):
    """Answers by what its states have seen: a state is a vector of facts."""

    title, transductive = "Counting", False
    source_images = 3
    steps: int = 2

    def init(self, key, model, task):
        images, labels = task.distractors
        seen = images.shape[0] + 0 * labels.sum()
        return jnp.stack([seen, model.variables["params"]["backbone"]["count"]])

    def step(self, state, task, key):
        assert task.num_source_classes == 2
        # Each step has the distractors of its own number.
        right = (task.distractors[0] == state[1]).all()
        return jnp.where(right, state.at[1].add(1), -100)

    def adapted(self, state):
        return wrap(len, {"params": {"count": state[1]}})

    def classify(self, state, task):
        """All queries are of the class that is the number of steps so far."""
        answer = (jnp.arange(task.num_classes) != state[1] % task.num_classes) * 1.0
        return jnp.tile(answer, (len(task.query), 1))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoPhases(Counting):
    record: tuple[int, ...] = (0, 2, 3)

    @property
    def phases(self):
        return (Counting(steps=2), Counting(steps=3))

    @property
    def recorded(self):
        return self.record


@pytest.mark.parametrize("loop", ["python", "compiled"])
def test_phases_run_in_a_row_and_tasks_carry_distractors(options, dataset, loop):
    class Source(datasets.Source):
        def __init__(self):
            pass

        num_classes = 2

        def check(self, count):
            assert count == 3

        def draw(self, numbers, step, count):
            images = np.full((len(numbers), count, 18, 18, 3), step, np.uint8)
            return images, np.zeros((len(numbers), count), np.int32)

    class Looped(TwoPhases):
        step_loop = loop

    model = wrap(len, {"params": {"count": jnp.asarray(0)}})
    scorer = AdaptationScorer(
        entry=Entry("two", Looped()), model=model, options=options, source=Source()
    )
    counts = run(scorer, dataset, Engine(devices=jax.devices()[:1]), tasks=2)
    assert scorer.columns == ("two@0", "two@2", "two@3", "two")
    labels_eq = dataset.samplers[1](range(2)).labels[:, 4:]
    expected = [(labels_eq == step % 4).sum(axis=1) for step in (0, 2, 3, 5)]
    np.testing.assert_array_equal(counts.T, expected)


class Numbered(datasets.Source):
    """Ten images that hold their own number."""

    num_classes, fingerprint = 3, "numbers"

    def __init__(self, options):
        numbers = np.arange(10)
        images = np.zeros((10, 18, 18, 3), np.uint8) + numbers[:, None, None, None]
        self._options = options
        self.pixels = PixelCache(
            name="numbers",
            split="train",
            class_names=tuple("abc"),
            images=images.astype(np.uint8),
            labels=(numbers % 3).astype(np.int32),
            aspects=np.ones(10, np.float32),
            rows=numbers,
            fingerprint="numbers",
        )

    def check(self, count):
        assert count <= 10


def test_distractors_depend_on_the_task_s_number_and_the_step_alone(options):
    source = Numbered(options)

    def drawn(numbers, step):
        images, labels = source.draw(np.array(numbers), step, 4)
        assert images.shape == (len(numbers), 4, 18, 18, 3)
        found = images[:, :, 0, 0, 0]
        np.testing.assert_array_equal(labels, found % 3)
        return found.tolist()

    both = drawn([3, 7], 1)
    assert both == [*drawn([3], 1), *drawn([7], 1)]
    assert both[0] != both[1]
    # A pass shows an image once; the next pass has another order.
    first, second = (
        np.ravel([drawn([3], step) for step in steps]) for steps in ((0, 1), (2, 3))
    )
    assert len({*first.tolist()}) == 8 == len({*second.tolist()})
    assert first.tolist() != second.tolist()


SYSTEMS = {
    "conft": "mt_conft(steps=3;distractors=4;record=1;learning_rate=1e-2;loop={})",
    "ata": "finetune_ata(epochs=2;pseudo=10;batch=3;record=1;loop={})",
}


@pytest.mark.parametrize(
    ("system", "devices", "chunk", "loop"),
    [
        ("conft", 1, 4, "python"),
        ("conft", 2, 0, "compiled"),
        ("ata", 1, 4, "compiled"),
        pytest.param("conft", 8, 0, "python", marks=pytest.mark.devices8),
        pytest.param("ata", 8, 0, "python", marks=pytest.mark.devices8),
    ],
)
def test_systems_that_tune_divide_like_everything(
    model, options, dataset, system, devices, chunk, loop
):
    found = []
    for divided in ({"chunk": 1}, {"chunk": chunk, "devices": devices}):
        number = divided.pop("devices", 1)
        engine = Engine(**divided, devices=jax.devices()[:number])
        text = SYSTEMS[system].format(loop)
        entry = Entry(text, methods.get_method(text, image_size=tiny.SIZE))
        scorer = AdaptationScorer(
            entry=entry, model=model, options=options, source=Numbered(options)
        )
        found.append(run(scorer, dataset, engine, 5))
    np.testing.assert_array_equal(*found)


def test_a_method_that_gives_the_wrong_shape_is_told_before_the_work(options):
    class Wrong(Counting):
        source_images = 0

        def init(self, key, model, task):
            return jnp.zeros(2)

        def step(self, state, task, key):
            return state

        def classify(self, state, task):
            return jnp.zeros((2, 2))

    entry = Entry("wrong", Wrong())
    scorer = AdaptationScorer(
        entry=entry, model=wrap(len, {"params": {}}), options=options
    )
    with pytest.raises(UserError, match=r"gives \(2, 2\) for \(16, 4\)"):
        scorer.check(1)
