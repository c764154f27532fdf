"""Execution of circuits on ranks: executors, the messages to their processes, and checkpoints."""
