"""Pages with known main content, and what an extraction of them is worth: what training and evaluation share."""
