"""The privacy models of the files that pycanon is shown with: its values and ours.

The files are those of its repository, data/processed, in the folder that QUILTWORK_PYCANON names.
Its time grows with the number of groups, so that the whole airline file is left out, as in its own
examples.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from quiltwork.tables import Table
from quiltwork.tables.metrics.models import privacy_models

NAME = "pycanon's files"
CLAIM = "on the files that pycanon is shown with, its values of the privacy models are ours"

STUDENTS = ["Teacher", "Gender", "Ethnic", "Freeredu", "wesson"]
STROKE = ["gender", "age", "hypertension", "heart_disease", "ever_married", "work_type"]
STROKE += ["Residence_type", "smoking_status"]
AIRLINE = ["Gender", "Customer Type", "Age", "Type of Travel", "Class", "Flight Distance"]
AIRLINE += ["Departure Delay in Minutes", "Arrival Delay in Minutes"]
FLIGHT = ["Departure/Arrival time convenient", "On-board service", "satisfaction"]
ADULT = ["age", "education", "occupation", "relationship", "sex", "native-country"]
DRUGS = ["Age", "Sex", "BP", "Cholesterol", "Na_to_K"]
FILES: dict[str, tuple[list[str], list[str]]] = {
    **{f"adult_anonymized_{k}": (ADULT, ["salary-class"]) for k in (3, 10, 20)},
    **{f"airline_passenger_sat_k{k}": (AIRLINE, FLIGHT) for k in (2, 5, 10, 20)},
    "drug_type": (DRUGS, ["Drug"]),
    "drugs_k5": (DRUGS, ["Drug"]),
    "StudentsMath_Score": (STUDENTS, ["Score"]),
    **{f"StudentsMath_Score_k{k}": (STUDENTS, ["Score"]) for k in (2, 5, 7)},
    "healthcare-dataset-stroke-data": (STROKE, ["stroke"]),
    **{f"stroke_k{k}": (STROKE, ["stroke"]) for k in (2, 5, 10, 15, 19, 20, 22, 25)},
}


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    folder = Path(os.environ["QUILTWORK_PYCANON"])
    found: dict[str, object] = {}
    for done, (name, (known, secret)) in enumerate(FILES.items()):
        frame = pd.read_csv(folder / f"{name}.csv", skipinitialspace=True)
        frame.columns = frame.columns.str.strip()
        frame = frame.dropna(subset=[*known, *secret])
        known = [column for column in known if column in frame]
        found[f"{name}: rows, k, l, t"] = compared(frame, known, secret)
        progress(done + 1, len(FILES))
    return {"files": len(found), "values compared on each": 8, "disagreements": 0, **found}


def compared(frame: pd.DataFrame, known: list[str], secret: list[str]) -> str:
    """Compare both, and say what they have."""
    from pycanon import anonymity as peer

    ours = privacy_models(Table(frame, None, known, secret, count_missing=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = {
            "k": peer.k_anonymity(frame, known),
            "alpha": peer.alpha_k_anonymity(frame, known, secret)[0],
            "distinct_l": peer.l_diversity(frame, known, secret),
            "entropy_l": peer.entropy_l_diversity(frame, known, secret),
            "t": peer.t_closeness(frame, known, secret),
            "beta": peer.basic_beta_likeness(frame, known, secret),
            "enhanced_beta": peer.enhanced_beta_likeness(frame, known, secret),
            "delta": peer.delta_disclosure(frame, known, secret),
        }
    for name, value in theirs.items():
        own = getattr(ours, name)
        if name == "entropy_l":
            own = int(own + 1e-9)
        assert np.isclose(own, value, rtol=1e-9), (name, own, value)
    return f"{len(frame):,}, {ours.k}, {ours.distinct_l}, {ours.t:.4f}"
