"""Counts for everyone: the geometric mechanism, released once, and each consumer's optimum.

`geometric_mechanism` releases a count, `count_table` many of them, `several_levels` one for several
recipients; `people` are those with several rows, or who depend on each other. `consumers` is what
readers believe and fear, `remaps` each reader's best reading, `optimality` the program that no
mechanism beats, `chains` the optimal mechanism for people or moments tied by a chain.
"""

from quiltwork._offered import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
