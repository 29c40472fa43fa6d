"""Exact secure noise against NumPy's insecure difference of geometrics, OpenDP and diffprivlib.

One draw, a thousand and a million, of two-sided geometric noise at ε = 1, and of Gaussian noise on
integers. diffprivlib draws one value at a time, in a loop.
"""

from __future__ import annotations

import numpy as np
import opendp.prelude as dp

from bench.harness import compare
from bench.peers import diffprivlib_mechanisms
from quiltwork.noise import RoundedGaussian, TwoSidedGeometric

SCALE = 1


def contestants(size: int) -> dict[str, object]:
    law = TwoSidedGeometric.from_scale(SCALE)
    generator = np.random.default_rng()
    success = 1 - law.alpha
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    opendp = dp.m.make_laplace(*space, scale=float(SCALE))
    zeros = [0] * size
    loop = diffprivlib_mechanisms().Geometric(epsilon=1 / SCALE, sensitivity=1)
    return {
        "quiltwork": law.draw_one if size == 1 else lambda: law.draw(size),
        "numpy (insecure)": lambda: (
            generator.geometric(success, size) - generator.geometric(success, size)
        ),
        "opendp": lambda: opendp(zeros),
        "diffprivlib": lambda: [loop.randomise(0) for _ in range(size)],
    }


def gaussian_contestants(size: int) -> dict[str, object]:
    """Noise of standard deviation 100, on integers: rounded, or the discrete Gaussian."""
    law, generator = RoundedGaussian.from_scale(100), np.random.default_rng()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    opendp = dp.m.make_gaussian(*space, scale=100.0)
    zeros = [0] * size
    loop = diffprivlib_mechanisms().GaussianDiscrete(epsilon=0.05, delta=1e-6, sensitivity=1)
    contestants = {
        "quiltwork": law.draw_one if size == 1 else lambda: law.draw(size),
        "numpy (insecure)": lambda: np.rint(generator.normal(0, 100, size)),
        "opendp": lambda: opendp(zeros),
    }
    if size <= 1000:  # diffprivlib draws one value at a time
        contestants["diffprivlib"] = lambda: [loop.randomise(0) for _ in range(size)]
    return contestants


def main() -> None:
    dp.enable_features("contrib")
    compare("Noise, one draw", contestants(1), repeats=15, number=300)
    compare("Noise, a thousand draws", contestants(1000), repeats=9, number=3)
    compare("Noise, a million draws", contestants(10**6), repeats=3)
    compare("Gaussian noise, one draw", gaussian_contestants(1), repeats=9, number=30)
    compare("Gaussian noise, a thousand draws", gaussian_contestants(1000), repeats=5, number=1)
    compare("Gaussian noise, a hundred thousand draws", gaussian_contestants(10**5), repeats=3)


if __name__ == "__main__":
    main()
