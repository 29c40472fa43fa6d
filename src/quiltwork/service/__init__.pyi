from . import dashboard as dashboard
from .application import create_app as create_app
from .features import open_service as open_service
from .settings import Limits as Limits
from .settings import Settings as Settings
