"""Compute c*, the regret per log n that no consistent policy can beat, and check it by hand."""

import numpy as np

import sightline as sl

# Any problem works: features of the arms, the parameter, and the noise.
actions = np.array([[1.0, 0.0], [0.99, 0.02], [0.0, 1.0], [0.7, 0.7]])
problem = sl.LinearBandit(actions, theta=[1.0, 0.0], noise_std=0.3, name="mine")
bound = sl.lower_bound(problem)
print(bound)
for arm, (gap, pulls) in enumerate(zip(problem.gaps, bound.allocation, strict=True)):
    print(f"arm {arm}: gap {gap:.2f}, {pulls:.3g} pulls per log n")

# The certificate is plain arithmetic.  Multipliers that satisfy the gap of every arm bound c* from
# below:
shifts = (bound.alternatives - problem.theta) @ actions.T
weight = bound.multipliers @ shifts**2 / (2.0 * problem.noise_std**2)
assert (weight <= problem.gaps + 1e-9).all()
print(f"lower side: {bound.multipliers.sum():.6f}")
# The cost of an allocation that refutes every alternative bounds c* from above:
paid = problem.gaps > 0
print(f"upper side: {bound.allocation[paid] @ problem.gaps[paid]:.6f}")

# A problem can be easier if the parameter is known to lie in a box.
inside = sl.lower_bound(problem, sl.problems.Polytope.box([-1.0, -1.0], [1.0, 1.0]))
print(f"c* within the box: {inside.value:.6f}")
