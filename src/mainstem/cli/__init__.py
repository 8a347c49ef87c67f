"""The `mainstem` command: one folder per subcommand. Nothing below this layer may import it."""
