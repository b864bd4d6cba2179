"""Training replicas: data order, optimiser steps, checkpoints, early stopping, distribution."""
