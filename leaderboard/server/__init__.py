"""HTTP server of a board: its pages, a read API, and endpoints for submissions. All writes go through the functions
that write a board in its folder.

app.py             the application: `read_api.py`, `submissions.py`, then the pages
served_board.py    the current ledger, with tables and pages computed in the background
answers.py         responses with entity tags, compression and byte ranges
files.py, queue.py uploaded files, and the queue of submissions that are not entered yet
accounts.py        access tokens and quotas
"""
