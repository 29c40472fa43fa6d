"""The dashboard: HTML pages from templates, charts as SVG, one small script.

`FEATURE` has the table of browser sessions, `routes` makes the pages for `create_app`. `web.py`
leads from a request to a page, `pages` has the pages by subject, `demo_data.py` fills a demo.
"""

from quiltwork.service.dashboard.demo_data import fill
from quiltwork.service.dashboard.routing import FEATURE, routes

__all__ = ["FEATURE", "fill", "routes"]
