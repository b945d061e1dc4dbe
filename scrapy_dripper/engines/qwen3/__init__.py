"""The engine that labels blocks with a Qwen3 model, exported to ONNX. A grammar restricts its answers to labels."""
