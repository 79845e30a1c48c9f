"""What tests of a project, or of another store, need: import from the modules of this package."""
