"""Runs ``rdc_jax/programs/evaluate.py``; installed, the command is ``rdc-eval``."""

from rdc_jax.programs import evaluate

if __name__ == "__main__":
    evaluate.run()
