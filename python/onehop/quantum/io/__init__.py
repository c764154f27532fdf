"""Reading and writing of circuits, Hamiltonians and states; conversion from Qiskit."""
