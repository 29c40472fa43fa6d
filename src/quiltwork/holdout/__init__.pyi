from . import sklearn as sklearn
from .guarding import guard as guard
from .holdout_plan import HoldoutPlan as HoldoutPlan
from .holdout_plan import plan_holdout as plan_holdout
from .ladder import Ladder as Ladder
from .reusable import ReusableHoldout as ReusableHoldout
from .transcript import Answer as Answer
