"""Files and frames to sequences of states: columns, times, public bins, gaps and many subjects.

Nothing here is private or spends budget: it prepares what `quiltwork.release` takes. Which edges,
grid and treatment of gaps are used must be decided without looking at the protected values.
"""
