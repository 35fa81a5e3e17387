"""What the hosted pages and the console share: languages, templates, the headers of a page, the design, and the kit for
pages. A page is its query or form (`fields`, `days`, `lists`), its view (`views`) and its template, which knows the
request as `page` (the frame, the reader's language and rights) and what the page shows as `view`."""
