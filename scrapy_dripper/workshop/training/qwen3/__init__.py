"""Train a model of the Qwen3 architecture to label blocks: a small one from scratch, or a fine-tuned checkpoint."""
