"""How the tagger is made. Needs the extra ``[train]``."""
