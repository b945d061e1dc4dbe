"""Label blocks with an encoder: one pass over a page classifies the token behind each block."""
