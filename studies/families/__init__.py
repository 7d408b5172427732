"""Encoders, decoders and encoder-decoders compared."""
