"""From a draft to eight approvals: the terms that every candidate is judged by."""
