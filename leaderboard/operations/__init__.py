"""What is done to a board: submit, withdraw, rescore, verify, build."""
