"""Influence: the privacy loss through correlated time points, and the noise that it needs.

`sweep` bounds the leakage of levels per time point on chains and trees; `calibrate` and
`influence_curve` use it by default. `quilt_families` is the interface of the papers' quilts, for
all beliefs.
"""

from quiltwork.influence.bayesian.conversion import bayesian_dp, dp_for_bayesian_dp
from quiltwork.influence.calibration import ActiveQuilt, Calibration, calibrate
from quiltwork.influence.certificate_writer import certificate
from quiltwork.influence.curve import InfluenceCurve, influence_curve
from quiltwork.influence.diagnostics import driving_states, fit_warnings
from quiltwork.influence.gaussian_noise import GaussianCalibration
from quiltwork.influence.network import conditional_influence
from quiltwork.influence.profile import Profile, Run
from quiltwork.influence.quilts.chains import cluster_family
from quiltwork.influence.quilts.max_influence import max_influence
from quiltwork.influence.quilts.protocol import InfluenceMethod, QuiltFamily, quilt_families

__all__ = [
    "ActiveQuilt",
    "Calibration",
    "GaussianCalibration",
    "InfluenceCurve",
    "InfluenceMethod",
    "Profile",
    "QuiltFamily",
    "Run",
    "bayesian_dp",
    "calibrate",
    "certificate",
    "cluster_family",
    "conditional_influence",
    "dp_for_bayesian_dp",
    "driving_states",
    "fit_warnings",
    "influence_curve",
    "max_influence",
    "quilt_families",
]


def __dir__() -> list[str]:
    return sorted(__all__)
