"""Leaderboards: submissions, an append-only ledger, scores that anybody can recompute, and web pages.

No module of this package imports torch.
"""
