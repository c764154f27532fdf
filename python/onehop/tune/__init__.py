"""Measuring the settings of `onehop tune`, and the machine file of this machine."""
