"""Learn from a user's corrections: from corrected pages to a model that errs less on the sites of these pages."""
