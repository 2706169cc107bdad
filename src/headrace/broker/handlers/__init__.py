"""One file per API. Each begins with its ledger: which versions, what they brought, what is missing."""
