"""Why an export is refused. Pages say it in the person's language.

ExportError
├── TooManyExports     the merchant has as many prepared exports as are kept
├── ExportGone         the file expired, or is not there yet
└── ExportTakenOver    another worker prepares it now
"""


class ExportError(Exception):
    pass


class TooManyExports(ExportError):
    pass


class ExportGone(ExportError):
    pass


class ExportTakenOver(ExportError):
    pass
