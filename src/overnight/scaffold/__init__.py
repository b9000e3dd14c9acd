"""New repositories, written out from templates."""
