"""Listings of records: search by words, tables for terminals and notebooks, data frames."""
