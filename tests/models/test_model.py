"""Models, as their checkpoints have them."""

import compiling
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax import models
from rdc_jax.models.checkpoints import Checkpoints
from rdc_jax.models.heads import Classifier
from rdc_jax.models.model import wrap
from rdc_jax.runtime.errors import UserError


@pytest.mark.slow
def test_features_equal_torchs_on_real_images(shared_dir):
    torch = pytest.importorskip("torch", reason="needs the extra [torch]")
    from models.torch_reference import Classifier as Network

    from rdc_jax.data import open_source
    from rdc_jax.data.transforms import test_batch

    path = shared_dir / "weights/resnet10_miniimagenet84.tar"
    source = open_source("cropdisease", data_dir=shared_dir / "data")
    raw = np.stack([source.image(i) for i in range(0, len(source), 150)])
    images = np.asarray(test_batch(raw, 84))
    network = Network(64).eval()
    network.load_state_dict(torch.load(path, weights_only=True)["state"])
    with torch.no_grad():
        want = network.feature(torch.from_numpy(images.transpose(0, 3, 1, 2).copy()))
    for conv in ("xla", "auto"):
        with compiling.fully():
            got = models.load_backbone(path, conv=conv)(images)
        np.testing.assert_allclose(got, want.numpy(), atol=1e-4)


@pytest.fixture
def workdir(tmp_path):
    model = Classifier(models.create("resnet10"), 3)
    image = jnp.zeros((1, 32, 32, 3))
    variables = jax.jit(model.init)(jax.random.key(0), image)
    with Checkpoints(tmp_path / "checkpoints") as checkpoints:
        checkpoints.save(
            5,
            variables=variables,
            training={"step": np.asarray(5, np.int32)},
            metadata={"arch": "resnet10"},
        )
    return tmp_path


def test_our_checkpoints_are_loaded_from_any_of_their_paths(workdir):
    image = np.ones((2, 32, 32, 3), np.float32)
    loaded = [
        models.load_backbone(workdir / path)
        for path in ("", "checkpoints", "checkpoints/5", "latest")
    ]
    assert loaded[0](image).shape == (2, 512)
    assert len({backbone.fingerprint for backbone in loaded}) == 1
    assert loaded[0].arch == "resnet10" and loaded[0].metadata["step"] == 5


def test_a_backbone_tells_what_its_checkpoint_notes_of_its_training(workdir):
    backbone = models.load_backbone(workdir)
    assert backbone.training == "step 5"
    noted = {"source": "glyphs", "num_classes": 64, "image_size": 84, "score": 55.837}
    trained = backbone.replace(metadata=backbone.metadata | noted)
    assert trained.training == "on glyphs, 64 classes, 84 px, step 5, validation 55.84%"
    assert backbone.replace(metadata={"arch": "resnet10"}).training == ""


def test_the_fingerprint_follows_the_weights(workdir):
    backbone = models.load_backbone(workdir)
    changed = jax.tree.map(lambda x: np.array(x), backbone.variables)
    changed["params"]["backbone"]["stem_conv"]["kernel"][0, 0, 0, 0] += 1
    assert backbone.replace(variables=changed).fingerprint != backbone.fingerprint


def test_a_whole_model_keeps_its_head_and_gives_the_same_features(workdir):
    whole, backbone = models.load_model(workdir), models.load_backbone(workdir)
    image = np.ones((2, 32, 32, 3), np.float32)
    np.testing.assert_array_equal(whole(image), backbone(image))
    assert whole.fingerprint == backbone.fingerprint == backbone.whole_fingerprint
    assert whole.spec.head == "linear" and backbone.head is None
    logits = whole.head.apply(
        {"params": whole.variables["params"]["head"]}, whole(image)
    )
    assert logits.shape == (2, 3)
    other = jax.tree.map(np.array, whole.variables)
    other["params"]["head"]["bias"] += 1
    changed = whole.replace(variables=other)
    assert changed.fingerprint == whole.fingerprint
    assert changed.whole_fingerprint != whole.whole_fingerprint


def test_a_model_is_a_pytree_of_its_weights(workdir):
    model = models.load_backbone(workdir)
    image = np.ones((1, 32, 32, 3), np.float32)
    features, named, stats = jax.jit(lambda m, x: m.apply(x, train=True))(model, image)
    assert features.shape == (1, 512) and "block3" in named
    assert jax.tree.structure(stats) == jax.tree.structure(
        model.variables["batch_stats"]
    )
    leaves = jax.tree.leaves(model)
    assert len(leaves) == len(jax.tree.leaves(model.variables))


def test_any_network_is_a_model():
    def network(variables, images, train):
        return images.mean((1, 2)) @ variables["params"]["dense"], {}

    model = wrap(network, {"params": {"dense": jnp.ones((3, 5))}})
    assert model(np.ones((2, 8, 8, 3), np.float32)).shape == (2, 5)


def test_a_missing_checkpoint_is_told(tmp_path):
    with pytest.raises(UserError, match=f"no checkpoint in {tmp_path}"):
        models.load_backbone(tmp_path)
    with pytest.raises(UserError, match=f"there is no {tmp_path}/399.tar"):
        models.load_backbone(tmp_path / "399.tar")
