"""Published claims as records: the claim, the outcome of checking it, and text that describes both.

This package only reads files, so claims can be shown without the training code. The code that runs and evaluates claims
is in `baselines/reproduce/`; the claims and their recorded outcomes are in `baselines/claims/`.
"""
