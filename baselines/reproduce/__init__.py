"""Published claims as executable checks: what a claim is, how it is measured, and how it is judged.

A claim is one file of `baselines/claims/`, found by listing the folder (and those of `FARSHIFT_PATH`). Its rule is
data, written before it is run, and of a small closed set of shapes: nothing in a claim is evaluated as code.
"""
