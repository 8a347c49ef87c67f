"""Members of groups over plain sockets: thousands in one thread, at little cost beside a broker's work."""
