"""Models that others have trained: their files, read strictly, into this engine's configuration and
weights.
"""
