"""`onehop lattice`: gauge fields and quark propagators. Each subcommand is a function in a module of the same name."""
