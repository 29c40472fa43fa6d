"""Published Spark frames, brought here to be compared with local ones."""

from __future__ import annotations

import pandas as pd


def collected(frame) -> pd.DataFrame:
    return frame.toArrow().to_pandas()


def sorted_rows(frame) -> list[tuple]:
    shown = frame if isinstance(frame, pd.DataFrame) else collected(frame)
    return sorted(map(tuple, shown.astype(str).to_numpy().tolist()))
