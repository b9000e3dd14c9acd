"""What runs in the candidate's process: standard library only, copied into the run as a plain folder."""
