"""One thin module per verb: parse, one library call, print."""
