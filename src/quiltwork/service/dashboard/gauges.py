"""Budget gauges: a strip of patches, filled as far as budget is left."""

from __future__ import annotations

import html
from collections.abc import Iterator

from quiltwork.report import Html

LOW = 0.15
"""Below this share of the budget, what is left is drawn as a warning."""
_STEP, _SIZE = 16.0, 14.0


def gauge(name: str, budget: float, left: float, price: float = 0.0, patches: int = 20) -> Html:
    """Draw what is left of a budget, and what a price would take of it.

    >>> 'aria-label="Budget of a: 0.5 of 2 left."' in gauge("a", 2, 0.5).text
    True
    """
    share = min(1.0, max(0.0, left / budget)) if budget > 0 else 0.0
    after = max(0.0, left - price) / budget if budget > 0 else 0.0
    kind = "low" if after < LOW else "left"
    drawn = [
        f'<rect class="hole" x="{_STEP * i:.1f}" y="1" width="{_SIZE}" height="{_SIZE}" rx="2"/>'
        for i in range(patches)
    ]
    drawn += _filled(kind, 0.0, min(after, share) * patches)
    if price > 0:
        drawn += _filled("price", min(after, share) * patches, share * patches)
    said = f"Budget of {name}: {left:.4g} of {budget:.4g} left."
    if price > 0:
        said += f" The question takes {price:.4g}."
    return Html(
        f'<svg class="gauge" viewBox="0 0 {_STEP * patches - 2:.0f} 16" role="img" '
        f'aria-label="{html.escape(said)}">{"".join(drawn)}</svg>'
    )


def _filled(kind: str, first: float, last: float) -> Iterator[str]:
    """Draw patches from one place to another, the first and the last in part."""
    for i in range(int(first), int(last) + 1):
        low, high = max(first, i), min(last, i + 1)
        if high - low > 1e-9:
            x, width = _STEP * i + _SIZE * (low - i), _SIZE * (high - low)
            corner = min(2.0, width / 2)
            yield (
                f'<rect class="{kind}" x="{x:.1f}" y="1" width="{width:.1f}" '
                f'height="{_SIZE}" rx="{corner:.1f}"/>'
            )
