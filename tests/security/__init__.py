"""Security guarantees against hostile pages, model folders and requests."""
