"""Machines as data, and what a schedule would do on them: maps of ranks, rails and predicted times."""
