"""What the package costs, beside its peers and beside plain SQL: see README.md in this folder."""
