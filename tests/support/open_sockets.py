"""The sockets of a process that a network could reach."""

import contextlib
from pathlib import Path


def descriptors(pid: int) -> dict[int, str]:
    """Return what each descriptor of a process is. Some, as that which reads the folder, are closed meanwhile."""
    found = {}
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[int(one.name)] = str(one.readlink())
    return found


def internet_sockets(pid: int, listening: bool = False) -> list[str]:
    """Return the sockets of a process that a network could reach, or those that listen, with their addresses."""
    names = set(descriptors(pid).values())
    return [
        f"{kind} {fields[1]}"
        for kind in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6")
        for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]
        if f"socket:[{(fields := line.split())[9]}]" in names
        and (fields[3] == "0A" or not (listening and kind.startswith("tcp")))
    ]
