"""`python -m onehop` is the command `onehop`."""

from onehop.cli import main

raise SystemExit(main())
