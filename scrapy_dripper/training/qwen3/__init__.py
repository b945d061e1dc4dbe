"""How a model of the Qwen3 architecture learns to label blocks: a small one from nothing, or a checkpoint further."""
