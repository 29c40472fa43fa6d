"""What a person sees of a curator: pages from templates, charts as SVG, one small script.

`FEATURE` brings the tables of browser sessions, `routes` the pages, for `create_app`. `web.py`
leads from a request to a page, `pages` has a module for each, `demo.py` fills a curator to look at.
"""

from quiltwork.service.dashboard.demo_data import fill
from quiltwork.service.dashboard.routing import FEATURE, routes

__all__ = ["FEATURE", "fill", "routes"]
