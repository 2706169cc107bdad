"""What a request may cost: each thing is answered once, and a long request lets others have their turn."""
