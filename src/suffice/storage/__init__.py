"""Storage: artefact folders that a crash cannot break, and records streamed from untrusted files.

artefacts  folders with a manifest, atomic writes, arrays and ONNX networks
records    lines, JSON Lines, JSON and TSV with file:line errors
fields     checks of JSON values
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
