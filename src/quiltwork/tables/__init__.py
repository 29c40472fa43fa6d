"""Tables of many providers: checking and making tables that colluding providers cannot undo.

The folders are the way a row takes: `input` (files and frames, what cells mean), `codes` (columns
as integers, counts), `partitioning` into groups that `verification` finds to keep the
`constraints`, `generalization` of groups to published texts and `publishing` of these. `metrics`
and `risk` assess what a table keeps and reveals, `providers` is what providers check themselves,
and `spark` does the same where records do not fit one machine.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
