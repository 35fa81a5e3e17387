"""The checks of `guichet doctor` about where the data lies: the database's file, room to write, modes of files."""

from sqlalchemy import text

from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.db.errors import DatabaseDamaged
from guichet.db.write_probe import STANDBY_SILENT
from guichet.private_files import FILE_MODE, FOLDER_MODE, too_wide
from guichet.server.doctor.check import Check, DoctorCheck, DoctorProblem
from guichet.settings import Settings

#: Reads the whole file, apart from the contents of indexes; one line says "ok" or what is wrong first.
_QUICK_CHECK = text("PRAGMA quick_check(1)")


async def database_file(ctx: AppContext, writable: bool) -> Check:
    """Whether an embedded database's file is sound, and whether a write works now. Reads the whole file.

    `writable`: False if it is known that a write would wait for a standby; then none is tried.
    """
    name = "database file" if ctx.settings.embedded else "writing to the database"
    if ctx.settings.embedded and (damage := await _damage(ctx.db)):
        return Check(name, [str(DatabaseDamaged(str(ctx.settings.sqlite_path), damage))])
    fault = await ctx.write_probe.fault() if writable else STANDBY_SILENT
    return Check(name, [f"nothing can be written: {fault}"] if fault else [])


async def _damage(db: Database) -> str | None:
    """What is wrong with the file, on one line; None if nothing is."""
    try:
        [(result,), *_] = await db.scan(_QUICK_CHECK)
    except DatabaseDamaged as error:
        return str(error.__cause__)
    return None if result == "ok" else " ".join(str(result).split())


def file_modes(settings: Settings) -> DoctorCheck:
    files = too_wide(settings.private_paths)
    return DoctorCheck(
        "modes of files",
        [
            DoctorProblem.FILE_MODE(
                path=str(path),
                mode=f"{mode:04o}",
                wanted=f"{FOLDER_MODE if path.is_dir() else FILE_MODE:04o}",
                target=str(path),
            )
            for path, mode in files
        ],
        [{"path": str(path), "mode": f"{mode:04o}"} for path, mode in files],
    )
