"""Training replicas: data order, optimiser steps, checkpoints, early stopping, distribution.

A *replica* is one seed with one setting, a *member* its seed and settings. A *replica group* is what one worker trains;
it is divided into *replica stacks*, whose weights are stacked and updated together.
"""
