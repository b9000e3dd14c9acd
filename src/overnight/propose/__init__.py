"""What a proposer may see, and asking it for the next idea."""
