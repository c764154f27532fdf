"""Noise: channels, density matrices and trajectories."""
