"""One file per Kafka API, named after its key: request and response, each version, declared once.

The files hold declarations only. Nothing imports them all: `registry` loads the one that is asked for.
"""
