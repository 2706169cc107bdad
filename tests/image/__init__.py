"""The image that `poe image` has built, run as whoever deploys it runs it."""
