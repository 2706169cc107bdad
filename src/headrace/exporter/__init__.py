"""Lags of groups and windows of the audit for Prometheus, from the snapshots of `headrace.observe`."""
