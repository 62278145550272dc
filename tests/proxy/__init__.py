"""Tests of the proxy for gRPC clients."""
