"""run_pretrain.py as it is, but with tiny networks: for tests that kill it."""

import pathlib
import runpy
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

    import compiling
    import tiny

    from rdc_jax.models import BACKBONES

    compiling.set_up()
    BACKBONES["resnet10"] = tiny.TinyNet
    BACKBONES["tiny_resnet"] = tiny.TinyResNet
    runpy.run_path(str(ROOT / "run_pretrain.py"), run_name="__main__")
