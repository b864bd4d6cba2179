"""Replicas trained together: stacked parameters, their hyperparameters and random numbers."""
