"""Pure functions that say no, each with a full sentence; nothing here starts or writes anything."""
