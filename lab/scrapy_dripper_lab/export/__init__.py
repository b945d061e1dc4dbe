"""Export a Qwen3 checkpoint to a prepared folder. Requires the extra [export]. Crawls never import it."""
