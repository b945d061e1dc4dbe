"""Learn from pages that a user has corrected, to improve the model on the sites of these pages."""
