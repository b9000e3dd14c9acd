"""Conformance suites and a simulated machine, shipped for whoever implements a port."""
