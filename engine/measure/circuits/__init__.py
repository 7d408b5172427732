"""Experiments on trained models: patching, induction, sinks, steering, quantisation."""
