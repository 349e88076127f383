"""Every public name and the module that defines it: the only list of them.

Type checkers and editors read this file, and so does ``__init__.py`` at run time.  A new public
name is one line here and one entry on ``docs/reference/python.md``, which a test asks for.
Policies come from their catalogue.
"""

from sightline import problems as problems
from sightline.bounds.asymptotic import LowerBound as LowerBound
from sightline.bounds.asymptotic import lower_bound as lower_bound
from sightline.bounds.certificate import ConvergenceWarning as ConvergenceWarning
from sightline.bounds.finite_horizon import HorizonBound as HorizonBound
from sightline.bounds.observability import Observability as Observability
from sightline.bounds.observability import observability as observability
from sightline.core.action_set import first_largest_offered as first_largest_offered
from sightline.core.action_set import is_offered as is_offered
from sightline.core.action_set import nth_offered as nth_offered
from sightline.core.action_set import number_offered as number_offered
from sightline.core.clock import Clock as Clock
from sightline.core.clock import never as never
from sightline.core.clock import tick as tick
from sightline.core.confidence import ConfidenceRule as ConfidenceRule
from sightline.core.confidence import register_confidence as register_confidence
from sightline.core.confidence_rules import FixedBeta as FixedBeta
from sightline.core.confidence_rules import LogDet as LogDet
from sightline.core.confidence_rules import LogLog as LogLog
from sightline.core.gains import Round as Round
from sightline.core.gains import register_information as register_information
from sightline.core.gaps import register_gaps as register_gaps
from sightline.core.likelihood import Bernoulli as Bernoulli
from sightline.core.likelihood import Gaussian as Gaussian
from sightline.core.likelihood import Likelihood as Likelihood
from sightline.core.likelihood import Poisson as Poisson
from sightline.core.likelihood import register_likelihood as register_likelihood
from sightline.core.model import Model as Model
from sightline.core.projections import Polytope as Polytope
from sightline.experiments.experiment import Experiment as Experiment
from sightline.policies.base import Choice as Choice
from sightline.policies.base import Evidence as Evidence
from sightline.policies.base import Policy as Policy
from sightline.policies.base import Supports as Supports
from sightline.policies.base import at_stake as at_stake
from sightline.policies.base import choose as choose
from sightline.policies.base import decided as decided
from sightline.policies.base import dropped as dropped
from sightline.policies.base import inspect as inspect
from sightline.policies.base import register_policy as register_policy
from sightline.policies.base import update as update
from sightline.policies.catalogue import *  # noqa: F403 - at run time, the policies only
from sightline.problems.bandits import ContextualBandit as ContextualBandit
from sightline.problems.bandits import LinearBandit as LinearBandit
from sightline.problems.bandits import LinearGame as LinearGame
from sightline.problems.noise import register_noise as register_noise
from sightline.report.plan import Plan as Plan
from sightline.report.plan import plan as plan
from sightline.report.results import Results as Results
from sightline.report.run import run as run
from sightline.report.scoreboard import Scoreboard as Scoreboard
from sightline.report.scoreboard import scoreboard as scoreboard
from sightline.report.session import Session as Session
from sightline.service.client import Client as Client
from sightline.service.client import RemoteDecision as RemoteDecision
from sightline.service.client import ServiceError as ServiceError
from sightline.sessions.contexts import contexts as contexts
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
from sightline.sessions.factorial import factorial as factorial
from sightline.sessions.games import duel as duel
from sightline.sessions.games import game as game
from sightline.sessions.labels import Contrast as Contrast
from sightline.sessions.options import Options as Options
from sightline.sessions.stream import stream as stream
from sightline.simulation.simulate import Run as Run
from sightline.simulation.simulate import simulate as simulate
from sightline.simulation.trace import GainTrajectory as GainTrajectory
from sightline.simulation.trace import information_gains as information_gains
from sightline.version import __version__ as __version__
