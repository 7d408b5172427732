"""Experiments on trained models: patching, induction, in-context learning, sinks, steering, quantisation."""
