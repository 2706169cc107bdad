"""One look at a cluster after the other, for everybody who watches: the console, the exporter, a terminal."""
