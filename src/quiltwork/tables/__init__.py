"""Tables of many providers: publishing and verifying tables that colluding providers cannot undo.

The folders follow a row: `input` (files and frames, canonical values of cells), `codes` (columns as
integers, counts), `partitioning` into groups for which `verification` proves the `constraints`,
`generalization` of groups to published texts, and `publishing` of these. `metrics` and `risk`
measure what a table keeps and reveals, `providers` contains the checks of the providers themselves,
and `spark` does the same for records that do not fit one machine.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
