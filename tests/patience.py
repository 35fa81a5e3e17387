"""How long a test waits for what should come.

Nobody waits that long for what does come, and what does not come fails the test after it. So it is long enough for a
machine that does ten other things, and shorter than what ends a whole test (`timeout` in pyproject.toml).
"""

from typing import Final

#: Seconds.
PATIENCE: Final = 90.0
