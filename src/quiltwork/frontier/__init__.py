"""The frontier of private counts: what each route costs at equal proven privacy, and its floor."""

from quiltwork.frontier.certificate import ChainCertificate
from quiltwork.frontier.mechanism import ChainMechanism, optimal_for_chain
from quiltwork.frontier.tables import table_leakage

__all__ = ["ChainCertificate", "ChainMechanism", "optimal_for_chain", "table_leakage"]
