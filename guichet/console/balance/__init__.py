"""Balance, statements, exports and PDF documents."""
