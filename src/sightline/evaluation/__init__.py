"""Off-policy evaluation of logged decisions: values of options and policies, with intervals."""

from sightline.evaluation.log import read_open_bandit as read_open_bandit
from sightline.evaluation.log import read_vw as read_vw
