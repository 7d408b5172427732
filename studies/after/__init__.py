"""Training of a trained model: fine-tuning (LoRA), preferences (DPO), a reward (REINFORCE)."""
