"""Private counts: one release for everybody, and each reader's best interpretation of it.

`geometric_mechanism` releases one count, `count_table` many, `several_levels` one count at several
privacy levels. `contributors` limits how many rows one person contributes, and prices people who
depend on each other. `consumers` holds a reader's prior and loss, `remaps` the optimal reading,
`optimality` the linear program of the best possible mechanism, and `chains` the optimal mechanism
for states along a Markov chain.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
