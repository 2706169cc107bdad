"""One file for a cluster: what it says, what the cluster has, and the difference."""
