"""Parts of several use cases: idempotency, resolved policies, leases, and what is sent after a commit."""
