"""Built-in training: what a candidate of the `params` preset runs."""
