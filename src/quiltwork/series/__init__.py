"""Files and frames to sequences of states: columns, times, public bins, gaps and many subjects.

Nothing here is private or spends budget: it prepares what `quiltwork.release` takes. Which edges,
grid and treatment of gaps are used must be decided without looking at the protected values.
"""

from quiltwork.series.binning import Bins
from quiltwork.series.read import Series, read_series, read_states

__all__ = ["Bins", "Series", "read_series", "read_states"]
