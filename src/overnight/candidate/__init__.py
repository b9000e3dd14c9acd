"""From a proposal to one pinned git tree in a store that only we write."""
