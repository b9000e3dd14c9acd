"""From evidence to a verdict. Pure: no clock, no disk, no randomness."""
