"""Why a job of the staff is refused or ends. Pages say it in the person's language.

StaffJobError
├── TooManyJobs     as many jobs wait as are kept waiting
└── JobTakenOver    another worker does it now
"""


class StaffJobError(Exception):
    pass


class TooManyJobs(StaffJobError):
    pass


class JobTakenOver(StaffJobError):
    pass
