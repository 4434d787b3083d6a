"""Files: artefacts that a crash cannot break, records read one by one, weights that nobody has to trust.

artefacts  written whole or not at all: a file, or a folder with its manifest
records    read one by one, from files that anybody may have written
weights    arrays and networks, looked at before they are believed; imported by name, so that reading a line does not load numpy
"""

from suffice.storage.artefacts import (
    MANIFEST,
    Manifest,
    new_artefact,
    open_artefact,
    package_versions,
    remove_dead_drafts,
    sha256_of,
    write_atomically,
)
from suffice.storage.records import (
    MAX_RECORD_BYTES,
    SKIP_HINT,
    BadRecords,
    Entry,
    Line,
    Record,
    is_json_array,
    read_json_array,
    read_json_object,
    read_json_records,
    read_jsonl,
    read_lines,
    readable_file,
)

__all__ = [
    "MANIFEST",
    "MAX_RECORD_BYTES",
    "SKIP_HINT",
    "BadRecords",
    "Entry",
    "Line",
    "Manifest",
    "Record",
    "is_json_array",
    "new_artefact",
    "open_artefact",
    "package_versions",
    "read_json_array",
    "read_json_object",
    "read_json_records",
    "read_jsonl",
    "read_lines",
    "readable_file",
    "remove_dead_drafts",
    "sha256_of",
    "write_atomically",
]
