"""The doctor's checks over made-up facts."""
