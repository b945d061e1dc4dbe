"""The commands of the laboratory, each of which ``scrapy-dripper`` finds by its entry point."""
