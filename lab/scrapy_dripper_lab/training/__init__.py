"""Train the tagger. Needs the extra ``[train]``."""
