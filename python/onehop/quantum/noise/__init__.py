"""Simulation of noise: channels, density matrices and trajectories."""
