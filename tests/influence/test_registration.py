"""Every kind of belief is known to the functions that dispatch on it, in a fresh process too."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "call",
    [
        "qw.calibrate(qw.Clusters(list('aab')), None, 1)",
        "qw.calibrate(CHAIN, 100, 1, method='exact')",
        "qw.calibrate(NETWORK, None, 1, method='exact')",
        "qw.max_influence(NETWORK, 1, [2])",
    ],
)
def test_a_belief_needs_nothing_loaded_before(call):
    code = f"""
import networkx as nx
import quiltwork as qw
CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
NETWORK = qw.Network(nx.Graph([(1, 2)]), {{(1, 2): [[2, 1], [1, 2]]}})
{call}
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
