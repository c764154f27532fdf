"""Bytes that a host sends over its network interfaces, as the kernel counts them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["sent_bytes"]


def sent_bytes() -> int:
    """The bytes that all interfaces of this host but the loopback have sent since they came up, headers included."""
    total = 0
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        device, counters = line.split(":", 1)
        if device.strip() != "lo":
            total += int(counters.split()[8])
    return total
