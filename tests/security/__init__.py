"""What pages, model folders and requests from others cannot do."""
