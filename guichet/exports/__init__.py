"""Exports: files for a spreadsheet, streamed or prepared by the worker."""
