"""One config for each table and figure of the paper."""
