"""Runs ``rdc_jax/programs/pretrain.py``; installed, the command is ``rdc-pretrain``."""

from rdc_jax.programs import pretrain

if __name__ == "__main__":
    pretrain.run()
