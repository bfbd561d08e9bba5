"""Where the marks of a drawing go: profiles in, positions out, no markup."""
