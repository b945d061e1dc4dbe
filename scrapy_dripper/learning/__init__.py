"""Pages with ground truth, and metrics for extractions: shared by training and evaluation."""
