"""The inputs that a model receives, without the labels of evaluation parts."""
