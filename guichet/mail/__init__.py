"""Mails: written in both languages, queued as rows, sent by the worker."""
