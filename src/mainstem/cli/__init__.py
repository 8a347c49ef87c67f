"""The `mainstem` command: one module per subcommand. Nothing below this layer may import it."""
