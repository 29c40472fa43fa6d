"""The curator: the trusted third party as a service that a team can live with.

Owners register data, providers upload, analysts ask, auditors check. `open_service(settings)`
opens one, `create_app(service)` is its application; `features.py` lists what it is made of. A
feature is a module with its tables (`storage.py`), its routes (`routes.py`) and its lines in the
table of rights (`rights.py`).
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
