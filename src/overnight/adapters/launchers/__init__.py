"""Where a run is started."""
