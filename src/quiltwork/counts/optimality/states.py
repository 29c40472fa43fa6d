"""The four states of a privacy constraint between two neighbouring rows of a mechanism."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

States: TypeAlias = NDArray[np.object_]

DOWN, UP, SLACK, ZERO = "down", "up", "slack", "zero"
