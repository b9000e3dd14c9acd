"""The nouns of Overnight: frozen, strictly parsed, versioned. Standard library only, no I/O."""
