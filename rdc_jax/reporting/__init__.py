"""Reporting: one self-contained HTML page from the results of a run.

``python -m rdc_jax.reporting WORKDIR`` writes it, from ``results.json`` and, where
there are some, the example tasks; nothing is evaluated again. From the bottom: ``runs``
(what is read), ``variants`` (parameters in names), ``summary`` (did it help),
``tables``, ``drawing`` (figures as inline SVG), ``figures``, ``example_tasks``
(t-SNE); then ``page`` and ``report``. ``compare`` holds two runs on the
same tasks against each other.
"""
