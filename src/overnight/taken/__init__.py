"""Files that people take home. Each is copied as it is, and works where Overnight is not installed."""
