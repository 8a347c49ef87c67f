"""Files as the log uses them: handles that close themselves, reserved blocks, small text files, deletion."""
