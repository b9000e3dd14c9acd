"""Code behind a port, one library a file."""
