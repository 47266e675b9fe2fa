"""Reporting: one self-contained HTML page from the results of runs.

``python -m rdc_jax.reporting WORKDIR`` writes it, from ``results.json`` and, where
there are some, the example tasks; nothing is evaluated again. From the bottom: ``runs``
(what is read), ``variants`` (parameters in names), ``headline`` (did it help),
``tables``, ``drawing`` (figures as inline SVG), ``figures``, ``examples`` (t-SNE),
``provenance``; then ``page`` and ``report``.
"""
