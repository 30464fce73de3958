"""Verifies JSON Web Tokens of standard input with google-auth. Prints the header and the claims of each, as one JSON list a line."""

import json, sys
import google.auth.jwt

with open(sys.argv[1]) as file:
    key = file.read()
for line in sys.stdin:
    token = line.strip()
    claims = google.auth.jwt.decode(token, certs=key, audience=google.auth.jwt.decode(token, verify=False)["aud"])
    print(json.dumps([google.auth.jwt.decode_header(token), claims]))
