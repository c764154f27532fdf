"""What is on this machine, whether it works, and what to do where it does not."""

from onehop.doctor.examination import Finding, State, examine
from onehop.doctor.machine import host

__all__ = ["Finding", "State", "examine", "host"]
