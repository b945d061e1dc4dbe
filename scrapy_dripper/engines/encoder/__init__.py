"""Label blocks with an encoder, which classifies the token after each block in one pass over a page."""
