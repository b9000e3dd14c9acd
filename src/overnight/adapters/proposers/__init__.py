"""Who has the next idea."""
