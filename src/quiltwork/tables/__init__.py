"""Tables of many providers: checking and making tables that colluding providers cannot undo.

`meanings` says which spellings may be one value, `constraints` what a group must satisfy,
`verification` whether every coalition leaves enough, `partitioning` how records become groups,
`generalization` how groups become published texts, `metrics`, `risk` and `report_page` what a table
keeps and tells. `spark` does the same where records do not fit one machine.
"""

from quiltwork._offered import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
