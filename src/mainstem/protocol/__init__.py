"""The Kafka wire protocol: schema language, compiled codecs, headers, error codes and a schema per API.

This is the lowest layer. It knows bytes and messages only: it must never import another part of the
package, hold state about a connection or decide how a request is answered.
"""
