"""Published claims as executable checks: how a claim is measured and judged.

A claim is one file of `baselines/claims/`, found by listing the folder (and those of `FARSHIFT_PATH`). Its rule is
data, written before it is run, and of a small closed set of forms: nothing in a claim is evaluated as code.
"""
