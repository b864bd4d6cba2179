"""Operations on a board: submit, withdraw, rescore, verify, build."""
