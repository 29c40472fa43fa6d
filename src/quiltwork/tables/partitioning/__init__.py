"""From records to groups.

`coded_records` says where a node is cut, from counts per value, whoever made them: `nodes` and
`mondrian` for the levels of a tree in memory, `spark.tree` for nodes that workers count. `guards`
says which nodes are private, `recipe` what is done in which order.
"""
