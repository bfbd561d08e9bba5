"""What the graph can hold: each op once, with its types, its rules and its meaning."""
