"""Evaluation: methods over thousands of episodes, with a record that survives kills.

``evaluate`` is the whole of it. From the bottom: ``options`` (what a run is told),
``targets`` (data sets and their tasks), ``features`` (one pass a data set), ``judge``
(one episode), ``engine`` (all of them, over devices and processes), ``ledger`` (what is
done), then ``statistics``, ``diagnostics``, ``results`` and ``table``.
"""
