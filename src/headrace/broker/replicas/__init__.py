"""Following leaders: fetching, in-sync replicas, throttles."""
