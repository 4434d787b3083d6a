"""Storage: artefact folders that a crash cannot break, and records streamed from untrusted files.

artefacts  folders with a manifest, atomic writes, shared logs, arrays and ONNX networks
locks      locks on open files
records    lines, JSON Lines, JSON and TSV with file:line errors
fields     checks of JSON values
"""

from suffice.storage.artefacts import MANIFEST as MANIFEST
from suffice.storage.artefacts import Manifest as Manifest
from suffice.storage.artefacts import append_line as append_line
from suffice.storage.artefacts import append_record as append_record
from suffice.storage.artefacts import check_appendable as check_appendable
from suffice.storage.artefacts import check_replaceable as check_replaceable
from suffice.storage.artefacts import new_artefact as new_artefact
from suffice.storage.artefacts import open_artefact as open_artefact
from suffice.storage.artefacts import package_versions as package_versions
from suffice.storage.artefacts import remove_dead_drafts as remove_dead_drafts
from suffice.storage.artefacts import rotated_path as rotated_path
from suffice.storage.artefacts import sha256_of as sha256_of
from suffice.storage.artefacts import write_atomically as write_atomically
from suffice.storage.records import MAX_RECORD_BYTES as MAX_RECORD_BYTES
from suffice.storage.records import SKIP_HINT as SKIP_HINT
from suffice.storage.records import BadRecords as BadRecords
from suffice.storage.records import Entry as Entry
from suffice.storage.records import Line as Line
from suffice.storage.records import Record as Record
from suffice.storage.records import is_json_array as is_json_array
from suffice.storage.records import read_json_array as read_json_array
from suffice.storage.records import read_json_object as read_json_object
from suffice.storage.records import read_json_records as read_json_records
from suffice.storage.records import read_jsonl as read_jsonl
from suffice.storage.records import read_lines as read_lines
from suffice.storage.records import readable_file as readable_file
