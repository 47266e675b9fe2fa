"""Pure kernels of RDC: functions of the arrays of one episode, for the caller to vmap.

They follow the paper's steps: ``rows`` (which rows count) → ``distances`` (Eq. 3) →
``neighbours`` (Eq. 4) → ``jaccard`` (Eq. 5-7) → ``calibration`` (Eq. 8, and both spaces
together), with ``subspace`` (Eq. 9-10) and ``kernel_pca`` as second spaces,
``prototypes`` for classifying and ``losses`` (Eq. 11-12) for fine-tuning.
"""
