"""A private histogram of one CSV column with diffprivlib.

scikit-learn, which it needs, imports pandas and Polars where they are installed; here it is
measured without them.
"""

import csv
import sys

sys.modules.update(dict.fromkeys(["pandas", "polars"]))  # as if not installed

from diffprivlib.tools import histogram  # noqa: E402

path, categories = sys.argv[1], sys.argv[2].split(",")
with open(path, newline="") as file:
    column = [categories.index(row["state"]) for row in csv.DictReader(file)]
counts, _ = histogram(column, epsilon=1.0, bins=len(categories), range=(0, len(categories)))
print(dict(zip(categories, counts.tolist(), strict=True)))
