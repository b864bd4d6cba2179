"""Who may hand in, and how much: access tokens, quotas, rate limits, and an audit of what was refused."""
