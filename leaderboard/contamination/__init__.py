"""Has a model seen the test? Probes that say so as plain records.

declared.py      the training data that a model card declares, against the sources of a benchmark
fingerprints.py  exact and near duplicates between one's own training texts and a benchmark's test rows
canaries.py      a benchmark's canary string, looked for in a text or asked of a model

The strongest probe is a sealed draw: `leaderboard/sealed/contrast.py`.
"""
