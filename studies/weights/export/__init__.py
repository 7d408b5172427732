"""The engine's models for other programs: in Hugging Face's layout, or as one file of PyTorch."""
