"""What will be folded: legal cuts, chunks, and what is withheld from a provider that blocks it."""
