"""The curator: the trusted third party as a service that a team can live with.

Owners register data, providers upload, analysts ask, auditors check. `app.create_app(settings)` is
the application; `features.py` lists what it is made of. A feature is a module with its tables
(`storage.py`), its routes (`routes.py`) and its lines in the table of rights (`rights.py`).
"""
