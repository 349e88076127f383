"""Every public name and the module that defines it: the only list of them.

Type checkers and editors read this file, and so does ``__init__.py`` at run time.  A new public
name is one line here and one entry on ``docs/reference/python.md``, which a test asks for.
Policies come from their catalogue.
"""

from sightline import extend as extend
from sightline import problems as problems
from sightline import types as types
from sightline.bounds.asymptotic import lower_bound as lower_bound
from sightline.bounds.observability import observability as observability
from sightline.core.confidence_rules import FixedBeta as FixedBeta
from sightline.core.confidence_rules import LogDet as LogDet
from sightline.core.confidence_rules import LogLog as LogLog
from sightline.core.likelihood import Bernoulli as Bernoulli
from sightline.core.likelihood import Gaussian as Gaussian
from sightline.core.likelihood import Poisson as Poisson
from sightline.evaluation.evaluate import evaluate as evaluate
from sightline.experiments.experiment import Experiment as Experiment
from sightline.policies.catalogue import *  # noqa: F403 - at run time, the policies only
from sightline.problems.bandits import ContextualBandit as ContextualBandit
from sightline.problems.bandits import LinearBandit as LinearBandit
from sightline.problems.bandits import LinearGame as LinearGame
from sightline.problems.finite import FiniteClass as FiniteClass
from sightline.report.plan import plan as plan
from sightline.report.run import run as run
from sightline.report.scoreboard import scoreboard as scoreboard
from sightline.service.client import Client as Client
from sightline.sessions.designs import contexts as contexts
from sightline.sessions.designs import duel as duel
from sightline.sessions.designs import factorial as factorial
from sightline.sessions.designs import game as game
from sightline.sessions.designs import stream as stream
from sightline.sessions.session import Session as Session
from sightline.simulation.simulate import simulate as simulate
from sightline.simulation.trace import information_gains as information_gains
from sightline.version import __version__ as __version__
