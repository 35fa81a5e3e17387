"""Stand-ins for what is not ours: providers, merchants' servers, name servers, Redis, the clock. One file for each."""
