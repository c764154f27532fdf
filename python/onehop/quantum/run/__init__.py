"""Runs of circuits on ranks: executors in processes of their own, what travels to them, and checkpoints."""
