"""Compare policies on one problem, then follow IDS to 10^1000 rounds."""

import sightline as sl

problem = sl.problems.end_of_optimism(epsilon=0.01, slope=2.0, noise_variance=0.1)
bound = sl.lower_bound(problem)  # c*: the regret per log n that no consistent policy can beat
print(f"c* = {bound.value:.4f}")

policies = {
    "Stakes, the default": sl.Stakes(),
    "IDS": sl.IDS(),
    "LinUCB": sl.LinUCB(),
    "Thompson sampling": sl.ThompsonSampling(),
}
for name, policy in policies.items():
    run = sl.simulate(problem, policy, horizon=10**5, seed=0)
    print(f"{name:20} regret {run.regret[-1]:6.1f}, learned from {run.explorations[-1]} rounds")

far = sl.simulate(problem, sl.IDS(), horizon=10**1000, seed=0)
ratio = far.regret[-1] / (bound.value * far.log_t[-1])
print(f"IDS at 10^1000 rounds: {ratio:.2f} times c* log n")
