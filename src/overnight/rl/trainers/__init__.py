"""One trainer a file, each with its declared parameter space beside it."""
