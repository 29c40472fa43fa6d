"""Audit: the exact level of a release under a belief, and the least noise that has a given level.

`leakage` answers for what was released; `worst_case` also names the secret and the output.
"""

from quiltwork.audit.leakage import Leakage, leakage, worst_case

__all__ = ["Leakage", "leakage", "worst_case"]
