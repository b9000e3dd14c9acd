"""One refusal per file."""
