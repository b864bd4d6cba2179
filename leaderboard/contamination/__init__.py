"""Contamination probes: has a model seen the test? Each returns plain records. The strongest probe is a sealed draw:
`leaderboard/sealed/results.py`."""
