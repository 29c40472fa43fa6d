"""What a person sees of a curator: pages from templates, charts as SVG, one small script.

`PART` brings the tables of browser sessions, `routes()` the pages, for `app.create_app`. `web.py`
leads from a request to a page, `pages` has a module for each, `demo.py` fills a curator to look at.
"""

from quiltwork.service.dashboard.demo import fill
from quiltwork.service.dashboard.routing import PART, routes

__all__ = ["PART", "fill", "routes"]
