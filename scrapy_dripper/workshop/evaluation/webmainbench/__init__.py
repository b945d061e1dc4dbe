"""WebMainBench: its pages, and the metrics of its toolkit. Needs the extra ``[evaluate]``."""
