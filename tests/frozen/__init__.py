"""The service as it is seen from outside, recorded: files that tests compare with what it does now.

    openapi.json    the OpenAPI document
    answers.json    every endpoint's answer and one of each error code: status, headers, body byte for byte
    webhooks.json   every event as a merchant's server receives it: request line, headers, body byte for byte
    help.txt        `--help` of every command

and, outside of this folder, the examples of the documentation:

    guichet/data/examples.json    the examples of the OpenAPI document and of /docs
    docs/guide-*.md               the blocks of JSON of both guides, and their copies in the package
    sdks/                         the libraries' types, recorded answers and the synchronous Python client

They exist so that the code can be restructured: only a change that is meant may change them. Refresh them with

    .venv/bin/python -m tests.frozen

and read the difference before it is committed. What the service makes by chance (references, tokens, secrets) stands
as a placeholder, numbered by its first appearance; the clock stands still, so dates are compared as they are.
Everything taken from the project's code is imported in `service.py`.
"""
