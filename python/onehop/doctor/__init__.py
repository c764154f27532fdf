"""Examine this machine and its software: what is there, whether it works, and a remedy for what does not."""

from onehop.doctor.examination import Finding, State, devices, examine
from onehop.doctor.machine import host

__all__ = ["Finding", "State", "devices", "examine", "host"]
