"""Files and frames to sequences of states: columns, times, public bins, gaps and subjects.

Reading adds no noise and spends no budget: it prepares the data of `quiltwork.release`. Edges, grid
and the treatment of gaps must be chosen without looking at the protected values.
"""
