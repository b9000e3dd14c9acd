"""A study on disk: where everything lies, and the ledger that everything else is a fold of."""
