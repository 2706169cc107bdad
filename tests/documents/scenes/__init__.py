"""Programs that pages take for granted: consumers at work, a transaction that nobody ends."""
