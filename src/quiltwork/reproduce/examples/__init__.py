"""Runnable examples of what does not compose: `python -m quiltwork.reproduce.examples.NAME`."""
