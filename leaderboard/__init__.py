"""Who *wins*: submissions, an append-only ledger, scores that anybody can compute again, and a page to read.

Nothing in this room imports torch.
"""
