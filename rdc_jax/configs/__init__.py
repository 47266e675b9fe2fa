"""Configs of the two programs, which find them wherever the package is installed."""
