"""Self-balancing: what brokers carry, how even that is, and which few moves would make it more even."""
