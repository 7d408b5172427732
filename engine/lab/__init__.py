"""Faults, the doctor, a second implementation, exercises and guesses."""
