"""The referee's side of measurement."""
