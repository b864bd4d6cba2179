"""Blind data: what a model is given, with the labels of evaluation parts left out."""
