"""`onehop quantum`: the simulation of quantum circuits. Each subcommand is a module of the same name."""
