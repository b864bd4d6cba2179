"""Who may submit, and how much: access tokens, quotas, rate limits, and an audit log of refusals."""
