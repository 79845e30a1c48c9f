"""The application whose jobs the benchmarks run."""
