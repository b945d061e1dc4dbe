"""Clean a corpus, choose a sample of it, and count its tokens."""
