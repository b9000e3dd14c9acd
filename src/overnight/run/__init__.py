"""One training run: launched by one path, held by a supervisor of its own, harvested when it is over."""
