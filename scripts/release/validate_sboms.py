"""Holds lists of parts against the public schema of CycloneDX 1.6 and the rules of SPDX 2.3. Arguments: files without .cdx.json and .spdx.json."""

import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

for name in sys.argv[1:]:
    with open(f"{name}.cdx.json", encoding="utf-8") as file:
        mistake = JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read())
    assert mistake is None, f"{name}: {mistake}"
    document = parse_file(f"{name}.spdx.json")
    mistakes = [one.validation_message for one in validate_full_spdx_document(document)]
    assert not mistakes, f"{name}: {mistakes}"
    print(f"ok: {name}: CycloneDX 1.6, SPDX 2.3, {len(document.packages)} packages")
