"""Counts for everyone: the geometric mechanism and each consumer's optimum."""

from quiltwork.counts.consumer import Consumer
from quiltwork.counts.geometric import GeometricMechanism
from quiltwork.counts.tables import CountTable, release_table

__all__ = ["Consumer", "CountTable", "GeometricMechanism", "release_table"]
