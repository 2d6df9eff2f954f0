"""What may come in: credentials, forgotten texts, suspicion, origin, limits."""
