"""Tables: their grids, what is a table, and tables that Markdown has no marks for."""
