"""Optimisers of stacked parameters, one file each.

A file has `SETTINGS` (its defaults, a literal dict) and `class Optimiser`: see the protocol in
`training/optimiser_step.py`.
"""
