"""Classes of what calls return and raise, for annotations, ``except`` and ``isinstance``."""

from sightline.bounds.asymptotic import LowerBound as LowerBound
from sightline.bounds.certificate import ConvergenceWarning as ConvergenceWarning
from sightline.bounds.finite_horizon import HorizonBound as HorizonBound
from sightline.bounds.observability import Observability as Observability
from sightline.report.plan import Plan as Plan
from sightline.report.scoreboard import Scoreboard as Scoreboard
from sightline.service.client import RemoteDecision as RemoteDecision
from sightline.service.client import ServiceError as ServiceError
from sightline.sessions.decisions import Check as Check
from sightline.sessions.decisions import ClosedDecisionError as ClosedDecisionError
from sightline.sessions.decisions import Decision as Decision
from sightline.sessions.decisions import DecisionError as DecisionError
from sightline.sessions.decisions import ExpiredDecisionError as ExpiredDecisionError
from sightline.sessions.decisions import Pending as Pending
from sightline.sessions.decisions import RefusedRewardsError as RefusedRewardsError
from sightline.sessions.decisions import Status as Status
from sightline.sessions.decisions import UnknownDecisionError as UnknownDecisionError
from sightline.sessions.effects import Effect as Effect
from sightline.sessions.estimates import Estimates as Estimates
from sightline.sessions.journal import Event as Event
from sightline.sessions.options import Contrast as Contrast
from sightline.sessions.options import Options as Options
from sightline.simulation.simulate import Trajectory as Trajectory
from sightline.simulation.trace import GainTrajectory as GainTrajectory
