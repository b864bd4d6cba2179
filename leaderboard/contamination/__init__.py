"""Contamination probes: has a model seen the test? Each returns plain records.

declared.py      the training data that a model card declares, against the sources of a benchmark
fingerprints.py  exact and near duplicates between training texts and a benchmark's test rows
canaries.py      a benchmark's canary string, searched in texts or elicited from a model

The strongest probe is a sealed draw: `leaderboard/sealed/contrast.py`.
"""
