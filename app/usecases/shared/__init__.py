"""What several use cases need: idempotency, resolved policies, leases, what goes out after a commit."""
