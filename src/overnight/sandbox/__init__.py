"""What the kernel can do to hold a process that nobody trusts: used by runs and by measurements."""
