"""From records to groups.

`coded_records` chooses cuts from counts per value, whoever counted: `nodes` and `mondrian` for the
levels of a tree in memory, `spark.tree` for nodes counted by workers. `guards` decides which nodes
are private, `recipe` which steps are done in which order.
"""
