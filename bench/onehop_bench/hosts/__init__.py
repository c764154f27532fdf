"""Emulate several hosts on one machine, to test and measure programs between hosts."""

from __future__ import annotations

from onehop_bench.hosts.emulated import EmulatedHost, EmulatedHosts, Unavailable, emulated_hosts
from onehop_bench.hosts.launch import launch_on_hosts

__all__ = ["EmulatedHost", "EmulatedHosts", "Unavailable", "emulated_hosts", "launch_on_hosts"]
