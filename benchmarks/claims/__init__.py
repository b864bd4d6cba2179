"""Published claims as records: what a claim says, what came of checking it, and both in words.

Only what is read from files is here, so that whoever shows claims needs nothing that trains. What runs and judges them
is in `baselines/reproduce/`; the claims and their recorded outcomes lie in `baselines/claims/`.
"""
