"""Clients of the API that others' tools generate from /openapi.json, compiled and run against a real service.

generators.py says how each client is generated, compiled and run; linters.py knows Redocly and Spectral; demo.py is
the service that they all talk to. `samples` holds one program for each client: it creates a payment, reads it and
refunds it.

    .venv/bin/python -m clients            everything (make clients installs what it needs first)
    .venv/bin/python -m clients php go     some of it
"""
