"""Running baselines: plans, sweeps, suites, searches, recorded results."""
