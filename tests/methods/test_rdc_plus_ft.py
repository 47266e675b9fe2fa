"""RDC+-FT: the last stage learns the answers of RDC+."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from rdc_jax.methods import Task, get_method
from rdc_jax.methods.base import prepared
from rdc_jax.models.model import wrap

NETWORK = tiny.TinyResNet()
METHOD = get_method("rdc_plus_ft(layers=block2;image_size=16;steps=3;mirror=False)")


@pytest.fixture(scope="module")
def model():
    images = jax.random.normal(jax.random.key(1), (4, tiny.SIZE, tiny.SIZE, 3))
    start = jax.jit(NETWORK.init)(jax.random.key(0), images)
    return wrap(NETWORK, {kind: start[kind] for kind in ("params", "batch_stats")})


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    labels_n = np.r_[np.arange(3), np.tile(np.arange(3), 5)]
    colour_c = rng.integers(40, 210, (3, 1, 1, 3))
    noise = rng.integers(-40, 40, (len(labels_n), 20, 20, 3))
    images = (colour_c[labels_n] + noise).clip(0, 255).astype(np.uint8)
    arrays = map(jnp.asarray, (images[:3], labels_n[:3], images[3:]))
    return Task(*arrays, num_classes=3, key=jax.random.key(3))


@pytest.fixture(scope="module")
def states(model, task):
    passed = [jax.jit(METHOD.init)(jax.random.key(0), model, task)]
    step = jax.jit(METHOD.step)
    for number in range(METHOD.steps):
        passed.append(step(passed[-1], task, jax.random.key(number)))
    return passed


def test_it_learns_the_answers_that_rdc_plus_gives(states, task):
    first = states[0].targets
    s = len(task.support_labels)
    dist_qc = get_method("rdc_plus")(
        Task(first.features[:s], task.support_labels, first.features[s:], 3)
    )
    assert np.array_equal(first.member[s:].argmax(axis=1), dist_qc.argmin(axis=1))
    np.testing.assert_allclose(first.member.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(first.weight[:s], 1, atol=1e-6)
    assert all(0 <= one < 1 for one in first.weight[s:])


def test_the_first_steps_equal_a_torch_reference(states):
    """On the block that trains and the classifier, from the maps before them."""
    torch = pytest.importorskip("torch", reason="needs the extra [torch]")
    start = states[0]
    block, head = _torch_block(start, torch), start.params["head"]["kernel"]
    kernel = torch.tensor(np.array(head), requires_grad=True)
    maps = torch.from_numpy(np.array(start.entered[0]).transpose(0, 3, 1, 2))
    member, weight = (torch.from_numpy(np.array(x)) for x in start.targets[1:])
    trained = [*block.parameters(), kernel]
    adam = torch.optim.Adam(trained, lr=METHOD.finetune.learning_rate)
    for state in states[1:]:
        unit = torch.nn.functional.normalize(block(maps).mean((2, 3)))
        log_p = torch.log_softmax(unit @ kernel / 0.1, dim=1)
        loss = -(weight[:, None] * member * log_p).sum() / weight.sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
        mine = state.params["network"]["block2"]
        moved = block.conv2.weight.detach().numpy().transpose(2, 3, 1, 0)
        np.testing.assert_allclose(mine["conv2"]["kernel"], moved, atol=2e-6)
        np.testing.assert_allclose(
            state.params["head"]["kernel"], kernel.detach().numpy(), atol=2e-6
        )


def _torch_block(state, torch):
    nn = torch.nn
    params = state.params["network"]["block2"]
    stats = state.model.variables["batch_stats"]["backbone"]["block2"]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(4, 8, 3, 2, 1, bias=False)
            self.conv2 = nn.Conv2d(8, 8, 3, 1, 1, bias=False)
            self.shortcut_conv = nn.Conv2d(4, 8, 1, 2, bias=False)
            for name in ("norm1", "norm2", "shortcut_norm"):
                setattr(self, name, nn.BatchNorm2d(8))

        def forward(self, x):
            y = torch.relu(self.norm1(self.conv1(x)))
            y = self.norm2(self.conv2(y))
            return torch.relu(y + self.shortcut_norm(self.shortcut_conv(x)))

    block = Block().eval()
    with torch.no_grad():
        for name, module in block.named_children():
            values = {k: torch.from_numpy(np.array(v)) for k, v in params[name].items()}
            if "kernel" in values:
                module.weight.copy_(values["kernel"].permute(3, 2, 0, 1))
                continue
            module.weight.copy_(values["scale"])
            module.bias.copy_(values["bias"])
            module.running_mean.copy_(torch.from_numpy(np.array(stats[name]["mean"])))
            module.running_var.copy_(torch.from_numpy(np.array(stats[name]["var"])))
    return block


def test_both_spaces_answer_by_the_sum_of_their_inner_products(states, task):
    state, s = states[-1], len(task.support_labels)
    sides = []
    for feat_nd in (METHOD.features(state, task), state.targets.features):
        side = Task(feat_nd[:s], task.support_labels, feat_nd[s:], num_classes=3)
        side = prepared(side, get_method("rdc_plus").prepare)
        sides.append(np.concatenate([side.support, side.query]))
    gram_nn = sum(np.asarray(x, np.float64) @ x.T for x in sides)
    value, vector = np.linalg.eigh(gram_nn)
    rows = jnp.asarray(vector * np.sqrt(np.maximum(value, 0)), jnp.float32)
    want = get_method("rdc_plus(prepare=none)")(
        Task(rows[:s], task.support_labels, rows[s:], num_classes=3)
    )
    np.testing.assert_allclose(METHOD.classify(state, task), want, atol=1e-3)


def test_before_training_it_answers_as_rdc_plus(states, task):
    s, feat_nd = len(task.support_labels), states[0].targets.features
    want = get_method("rdc_plus")(
        Task(feat_nd[:s], task.support_labels, feat_nd[s:], num_classes=3)
    )
    np.testing.assert_allclose(METHOD.classify(states[0], task), want, atol=1e-3)


def test_its_own_numbers_stand_against_the_config_s_but_not_the_text_s():
    from rdc_jax.methods.finetune_options import FinetuneOptions

    config = FinetuneOptions(steps=20, layers=("block1",))
    one = get_method("rdc_plus_ft(learning_rate=3e-4)", finetune=config).finetune
    assert (one.steps, one.layers, one.learning_rate) == (8, ("block4",), 3e-4)
