"""Circuits, Hamiltonians and states from files and from Qiskit, and back."""
