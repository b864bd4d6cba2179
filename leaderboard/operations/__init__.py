"""What is done to a board: submit, withdraw, challenge, rescore, verify, build."""
