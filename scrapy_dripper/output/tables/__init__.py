"""Tables: grids, data tables and layout tables, and tables that Markdown cannot express."""
