"""Encoder-decoders: model, data, training and writing."""
