"""Reporting: one self-contained HTML page from the results of runs.

``python -m rdc_jax.reporting WORKDIR`` writes it. Numbers come from ``results.json``
and pictures from ``exhibits``; nothing is evaluated again. From the bottom: ``runs``
(what is read), ``gains`` (did it help), ``published`` (the paper's numbers),
``variants`` (parameters in names), ``summary`` (in words), ``tables``, ``settings``
(what was run); ``palette``, ``drawing`` and ``charts`` (figures as inline SVG),
``plots``, ``shares``, ``sweeps``, ``curves``, ``embedding`` (t-SNE), ``rankings``; then
``page`` and ``report``.
"""
