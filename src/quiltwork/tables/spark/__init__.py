"""Tables larger than one machine, on PySpark.

The driver receives aggregates only: distinct values, counts per node, value and provider, verdicts.
Rows are encoded once into compact blocks, the top of the partition tree is cut by exact counts over
all blocks, subtrees are finished by the local algorithms inside Arrow functions, and the published
frame is verified again, group by group, on the workers.
"""

from quiltwork.tables.spark.backend import anonymize_spark
from quiltwork.tables.spark.workers import verify_spark

__all__ = ["anonymize_spark", "verify_spark"]
