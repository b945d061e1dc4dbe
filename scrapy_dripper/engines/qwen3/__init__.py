"""The engine that asks a Qwen3 model, exported to ONNX, under a grammar that lets it answer nothing but labels."""
