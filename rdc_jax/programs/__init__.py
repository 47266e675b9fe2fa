"""The two programs with a config: ``run_eval.py`` and ``run_pretrain.py``.

Installed, they are ``rdc-eval`` and ``rdc-pretrain``.
"""
