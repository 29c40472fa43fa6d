"""Runnable examples of what does not compose: `python -m quiltwork.accounting.examples.NAME`."""
