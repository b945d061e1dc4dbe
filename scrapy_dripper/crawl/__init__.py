"""What a crawl needs behind its doors: pages into batches, batches to workers or a thread, results onto items."""
