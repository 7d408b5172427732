"""Costs of a model: cards of its parts, the ledger of parameters, FLOPs and memory."""
