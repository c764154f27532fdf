"""A machine for sums by hand."""

from onehop.machine import Machine, parse_machine

# Two hosts of two processors.
_TEXT = """
title = "two hosts"
[sources]
guess = "no source"
[memory]
bandwidth = {{ value = 1e9, basis = "guessed", source = "guess" }}
size = {{ value = 1e9, basis = "guessed", source = "guess" }}
{arithmetic}
[[level]]
name = "host"
of = "processor"
routing = "all_to_all"
extents = [2]
topology = {{ basis = "guessed", source = "guess" }}
latency = {{ value = {latency}, basis = "guessed", source = "guess" }}
overhead = {{ value = 0, basis = "guessed", source = "guess" }}
bandwidth = {{ value = {bandwidth}, basis = "guessed", source = "guess" }}
[[level]]
name = "cluster"
of = "host"
routing = "all_to_all"
extents = [2]
topology = {{ basis = "guessed", source = "guess" }}
latency = {{ value = 1e-5, basis = "guessed", source = "guess" }}
overhead = {{ value = 0, basis = "guessed", source = "guess" }}
bandwidth = {{ value = 1e7, basis = "guessed", source = "guess" }}
"""


def two_hosts(latency: float = 1e-6, bandwidth: float = 1e8, multiply_adds: float = 0) -> Machine:
    """Two hosts of two processors. Between hosts a message takes 10 µs, and its bytes at 10 MB/s."""
    arithmetic = ""
    if multiply_adds:
        rate = f'{{ value = {multiply_adds}, basis = "guessed", source = "guess" }}'
        arithmetic = f"[arithmetic]\ndouble = {rate}\n"
    return parse_machine(_TEXT.format(latency=latency, bandwidth=bandwidth, arithmetic=arithmetic), "two")
