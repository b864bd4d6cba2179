"""The board behind HTTP: its pages, an API to read it, and what takes submissions in. Everything that is written goes
through the functions that write a board in its folder.

app.py          the application: routers found in `routes/`, the pages last
served_board.py    what is shown: the ledger as it is, tables and pages as they were computed in the background
answers.py      answers with entity tags, compressed, in ranges
intake/         files that come in, and the queue of what is not entered yet
accounts/       tokens, quotas, rate limits, the audit
"""
