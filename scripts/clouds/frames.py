"""Reads frames with botocore. Prints the kind and the payload of each, as one JSON text a line."""

import json, sys
from botocore.eventstream import EventStreamBuffer

buffer = EventStreamBuffer()
buffer.add_data(sys.stdin.buffer.read())
for frame in buffer:
    print(json.dumps(frame.headers[":message-type"] + frame.payload.decode()))
