"""From the ledger to what a person reads in the morning."""
