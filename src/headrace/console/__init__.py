"""A web console: one page for each question about a cluster, from the snapshots of `headrace.observe`."""
