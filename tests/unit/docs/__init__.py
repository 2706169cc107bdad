"""What the documents name."""
