from . import sklearn as sklearn
from .guarding import guard as guard
from .ladder import Ladder as Ladder
from .planning import HoldoutPlan as HoldoutPlan
from .planning import plan_holdout as plan_holdout
from .reusable import ReusableHoldout as ReusableHoldout
from .transcript import Answer as Answer
