"""What the hosted pages and the console share: languages, templates, the headers of a page, forms, the design."""
