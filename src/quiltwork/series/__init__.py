"""Releases from time series: reading data as states, and private answers with error bars.

`reading` turns files and frames into sequences of states: time column, resampling, public bin
edges, gaps, subjects. `releases` answers a query, predicts its error (`preview`), and
post-processes an answer at no cost (`nonnegative` and others).
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
