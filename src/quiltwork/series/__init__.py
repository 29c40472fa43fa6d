"""Releases from time series: reading data as states, and private answers with error bars.

`read_series` turns files and frames into sequences of states, `release` answers a query,
`preview` tells its error beforehand, and `nonnegative` and its siblings polish an answer at no
cost.
"""

from quiltwork._lazy import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
