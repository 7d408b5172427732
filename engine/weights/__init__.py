"""Where trained models come from and go to: checkpoints, published files, export."""
