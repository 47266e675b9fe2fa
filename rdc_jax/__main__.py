"""``python -m rdc_jax``: which commands there are."""

import rdc_jax
from rdc_jax.runtime.text import ready_stdout, two_columns

_COMMANDS = (
    ("rdc-predict", "classify your own pictures (python -m rdc_jax.predict)"),
    ("rdc-eval", "evaluate methods over many tasks (python run_eval.py)"),
    ("rdc-pretrain", "pre-train a backbone (python run_pretrain.py)"),
    ("rdc-data", "list and check data sets (python -m rdc_jax.data)"),
    ("python -m rdc_jax.rerank", "rank a gallery for each query"),
    ("python -m rdc_jax.reporting", "write a report again, or compare two runs"),
)

if __name__ == "__main__":
    ready_stdout()
    print(f"rdc_jax {rdc_jax.__version__}; each command has --help\n")
    print(two_columns(_COMMANDS))
