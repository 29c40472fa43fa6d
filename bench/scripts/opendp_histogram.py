"""A private histogram of one CSV column with OpenDP's framework interface (no data frames).

It imports scikit-learn and Polars where they are installed; here it is measured as if alone.
"""

import csv
import sys

sys.modules.update(dict.fromkeys(["sklearn", "polars", "pandas", "randomgen"]))  # not installed

import opendp.prelude as dp  # noqa: E402

dp.enable_features("contrib")
path, categories = sys.argv[1], sys.argv[2].split(",")
with open(path, newline="") as file:
    column = [row["state"] for row in csv.DictReader(file)]
space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
counts = dp.t.make_count_by_categories(
    *space, categories=categories, null_category=False, MO=dp.L1Distance[int]
)
mechanism = counts >> dp.m.then_laplace(scale=1.0)
print(dict(zip(categories, mechanism(column), strict=True)))
