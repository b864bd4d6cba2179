"""The local cache: stored files and tables, their users, and the size limit."""
