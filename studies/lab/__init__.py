"""Faults, the doctor, and a second implementation."""
