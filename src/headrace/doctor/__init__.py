"""`headrace doctor`: facts of a cluster, collected once, and small checks over them."""
