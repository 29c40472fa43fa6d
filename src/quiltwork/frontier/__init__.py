"""The frontier of private counts: what each route costs at equal proven privacy, and its floor."""

from quiltwork.frontier.certificate import ChainCertificate
from quiltwork.frontier.comparison import Frontier, FrontierRow, frontier
from quiltwork.frontier.mechanism import ChainMechanism, optimal_for_chain
from quiltwork.frontier.robustness import Robustness, robustness, sweep
from quiltwork.frontier.tables import table_leakage

__all__ = [
    "ChainCertificate",
    "ChainMechanism",
    "Frontier",
    "FrontierRow",
    "Robustness",
    "frontier",
    "optimal_for_chain",
    "robustness",
    "sweep",
    "table_leakage",
]
