"""Convolution and pooling that are quick on CPU; ``conv.py`` above chooses them."""
