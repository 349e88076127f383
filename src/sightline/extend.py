"""What a policy, or another part of your own, is written with.

``register_*`` add parts.  ``choose``, ``update``, ``inspect``, ``decided``, ``dropped`` and
``at_stake`` are the functions of the contract of a policy, for calls from other policies and from
tests.  ``is_offered``, ``number_offered``, ``nth_offered`` and ``first_largest_offered`` read an
action set.
"""

from sightline.core.action_set import ActionSet as ActionSet
from sightline.core.action_set import first_largest_offered as first_largest_offered
from sightline.core.action_set import is_offered as is_offered
from sightline.core.action_set import nth_offered as nth_offered
from sightline.core.action_set import number_offered as number_offered
from sightline.core.clock import Clock as Clock
from sightline.core.clock import never as never
from sightline.core.clock import tick as tick
from sightline.core.confidence import ConfidenceRule as ConfidenceRule
from sightline.core.confidence import register_confidence as register_confidence
from sightline.core.gains import Round as Round
from sightline.core.gains import register_information as register_information
from sightline.core.gaps import register_gaps as register_gaps
from sightline.core.likelihood import Likelihood as Likelihood
from sightline.core.likelihood import register_likelihood as register_likelihood
from sightline.core.model import Model as Model
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
from sightline.problems.noise import register_noise as register_noise
