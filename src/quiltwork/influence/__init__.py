"""Influence: the privacy loss through correlated time points, and the noise that it needs.

`sweep` bounds the leakage of levels per time point on chains and trees; `calibrate` and
`influence_curve` use it by default. `quilt_families` is the interface of the papers' quilts, for
all beliefs.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
