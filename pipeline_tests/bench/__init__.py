"""`make bench`: the pipeline beside other means of doing the same job, on one generated day."""

import time

# A package is run before its scripts, hence before what they import: the start of `import_s`.
STARTED = time.perf_counter()
