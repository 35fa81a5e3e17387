"""Writes the rows of an export as CSV or XLSX, a few at a time. Nothing is kept but what was not taken yet.

The XLSX is written here and not by a library: those keep the rows in memory or in unencrypted temporary files until the
end. A workbook is a ZIP archive of a few small XML files and one long one for each sheet (ECMA-376, part 1, 18), which
`zipfile` writes without ever seeking back.
"""

import io
import zipfile
from collections.abc import Sequence
from typing import Any, Final, Protocol
from xml.sax.saxutils import escape
from zoneinfo import ZoneInfo

from guichet.clock import DAY, Instant, from_datetime, to_datetime
from guichet.domain import money
from guichet.domain.exports import Export
from guichet.exports import cells
from guichet.exports.columns import COLUMNS, KIND_NAMES, CellType
from guichet.exports.rows import Values
from guichet.printable import printable

#: Rows of a sheet, its title row included, are 1 048 576 at most.
SHEET_ROWS: Final = 1_048_575
#: A sheet ends before its file in the archive would need the 64-bit format, which not every program reads.
_SHEET_BYTES: Final = 2**30
#: The archive's files are dated with the first date that ZIP knows.
_ZIP_DATE: Final = (1980, 1, 1, 0, 0, 0)
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
#: The days of a spreadsheet are counted from 1899-12-30.
_FIRST_DAY: Final = 25_569


class FileWriter(Protocol):
    """Begins with the titles of the columns. `write` and `finish` return the bytes that are complete."""

    def write(self, rows: Sequence[Values]) -> bytes: ...

    def finish(self) -> bytes: ...


def file_writer(export: Export) -> FileWriter:
    return CsvWriter(export) if export.format == "csv" else XlsxWriter(export)


class _Cells:
    def __init__(self, export: Export) -> None:
        columns = COLUMNS[export.kind]
        self.time_zone = ZoneInfo(export.time_zone)
        self.titles = [column.title(export.language, export.time_zone) for column in columns]
        self.types: list[CellType] = [column.type for column in columns]
        self.widths = [column.width for column in columns]


class CsvWriter:
    def __init__(self, export: Export) -> None:
        self._cells = _Cells(export)
        self._text = io.StringIO(newline="")
        self._rows = cells.writer(self._text, self._cells.titles)

    def write(self, rows: Sequence[Values]) -> bytes:
        types = self._cells.types
        self._rows.writerows([self._cell(*cell) for cell in zip(types, row, strict=True)] for row in rows)
        return self.finish()

    def finish(self) -> bytes:
        written = self._text.getvalue().encode()
        self._text.seek(0)
        self._text.truncate()
        return written

    def _cell(self, kind: CellType, value: Any) -> str:
        if value is None:
            return ""
        match kind:
            case "amount":
                return cells.amount(value)
            case "moment":
                return cells.moment(value, self._cells.time_zone)
            case "number":
                return str(value)
            case "phone":
                return cells.text(f"+{value}")
            case _:
                return cells.text(value)


class _Sink(io.RawIOBase):
    """Takes what `zipfile` writes; it cannot be sought."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


class XlsxWriter:
    def __init__(self, export: Export, sheet_rows: int = SHEET_ROWS) -> None:
        self._cells = _Cells(export)
        self._name = KIND_NAMES[export.kind][0 if export.language == "fr" else 1]
        self._sheet_rows = sheet_rows
        self._sink = _Sink()
        self._zip = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED, allowZip64=True, compresslevel=4)
        self._sheets = 0
        self._begin_sheet()

    def write(self, rows: Sequence[Values]) -> bytes:
        if self._rows + len(rows) > self._sheet_rows or self._bytes > _SHEET_BYTES:
            room = max(0, self._sheet_rows - self._rows) if self._bytes <= _SHEET_BYTES else 0
            self._append(rows[:room])
            self._end_sheet()
            self._begin_sheet()
            rows = rows[room:]
        self._append(rows)
        return self._sink.take()

    def finish(self) -> bytes:
        self._end_sheet()
        for name, content in self._parts().items():
            self._zip.writestr(zipfile.ZipInfo(name, _ZIP_DATE), _HEAD + content, zipfile.ZIP_DEFLATED)
        self._zip.close()
        return self._sink.take()

    def _begin_sheet(self) -> None:
        self._sheets += 1
        self._rows = 0
        self._bytes = 0
        entry = zipfile.ZipInfo(f"xl/worksheets/sheet{self._sheets}.xml", _ZIP_DATE)
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._sheet = self._zip.open(entry, "w")
        titles = "".join(_text_cell(title, ' s="3"') for title in self._cells.titles)
        widths = "".join(
            f'<col min="{place}" max="{place}" width="{width}" customWidth="1"/>'
            for place, width in enumerate(self._cells.widths, 1)
        )
        view = '<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" state="frozen"/>'
        self._add(
            f'{_HEAD}<worksheet xmlns="{_MAIN}">{view}</sheetView></sheetViews><cols>{widths}</cols>'
            f"<sheetData><row>{titles}</row>"
        )

    def _end_sheet(self) -> None:
        last = chr(ord("A") + len(self._cells.types) - 1)  # No kind has more than 26 columns.
        self._add(f'</sheetData><autoFilter ref="A1:{last}{self._rows + 1}"/></worksheet>')
        self._sheet.close()

    def _append(self, rows: Sequence[Values]) -> None:
        types = self._cells.types
        lines = ("".join(self._cell(*cell) for cell in zip(types, row, strict=True)) for row in rows)
        self._add("".join(f"<row>{line}</row>" for line in lines))
        self._rows += len(rows)

    def _add(self, xml: str) -> None:
        content = xml.encode()
        self._bytes += len(content)
        self._sheet.write(content)

    def _cell(self, kind: CellType, value: Any) -> str:
        if value is None:
            return "<c/>"
        match kind:
            case "amount":
                return f'<c s="1"><v>{money.plain(value)}</v></c>'
            case "moment":
                return f'<c s="2"><v>{_serial(value, self._cells.time_zone)}</v></c>'
            case "number":
                return f"<c><v>{value}</v></c>"
            case "phone":
                return _text_cell(f"+{value}")
            case _:
                # Also for whoever edits the cell: what begins like a formula stays text.
                return _text_cell(printable(value), ' s="4"' if value[:1] in cells.SIGNS else "")

    def _parts(self) -> dict[str, str]:
        """The small files of the workbook, by name."""
        numbers = range(1, self._sheets + 1)
        names = [self._name if number == 1 else f"{self._name} {number}" for number in numbers]
        sheets = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(names, 1))
        related = "".join(
            f'<Relationship Id="rId{n}" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in numbers
        )
        kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
        overrides = "".join(
            f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{kinds}.worksheet+xml"/>' for n in numbers
        )
        package = '<Relationship Id="rId1" Type="' + _RELATIONS + '/officeDocument" Target="xl/workbook.xml"/>'
        styles = f'<Relationship Id="rId0" Type="{_RELATIONS}/styles" Target="styles.xml"/>'
        return {
            "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{sheets}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": (
                f'<Relationships xmlns="{_PACKAGE}/relationships">{styles}{related}</Relationships>'
            ),
            "xl/styles.xml": _STYLES,
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{package}</Relationships>',
            "[Content_Types].xml": (
                f'<Types xmlns="{_PACKAGE}/content-types">'
                '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
                f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
                f'<Override PartName="/xl/styles.xml" ContentType="{kinds}.styles+xml"/>{overrides}</Types>'
            ),
        }


#: Cell formats: 0 plain, 1 an amount with two decimals, 2 a date and time, 3 a title, 4 text that begins as a formula.
_STYLES: Final = (
    f'<styleSheet xmlns="{_MAIN}">'
    '<numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts>'
    '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="5"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="4" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>'
    '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" quotePrefix="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)


def _text_cell(text: str, style: str = "") -> str:
    return f'<c{style} t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'


def _serial(instant: Instant, time_zone: ZoneInfo) -> str:
    """The days since 1899-12-30 on a clock in `time_zone`, as spreadsheets keep a date and time."""
    local = from_datetime(to_datetime(instant).astimezone(time_zone).replace(tzinfo=None))
    day, within = divmod(local, DAY)
    return f"{day + _FIRST_DAY}.{within * 10**10 // DAY:010d}"
