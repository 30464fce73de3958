"""Reads OTLP's JSON by OpenTelemetry's own protocol definitions, one message a line as [path, message], and says what it read.

What they do not define is refused. The ids of OTLP's JSON are hex, where that of protocol buffers is base64.
"""
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

def to_base64(node):
    if isinstance(node, list):
        return [to_base64(one) for one in node]
    if not isinstance(node, dict):
        return node
    ids = ("traceId", "spanId", "parentSpanId")
    return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in ids else to_base64(v) for k, v in node.items()}

for line in sys.stdin:
    path, body = json.loads(line)
    kind = ExportTraceServiceRequest if path == "/v1/traces" else ExportMetricsServiceRequest
    message = json_format.ParseDict(to_base64(json.loads(body)), kind(), ignore_unknown_fields=False)
    again = kind()
    again.ParseFromString(message.SerializeToString())
    if path == "/v1/traces":
        spans = [s for r in again.resource_spans for scope in r.scope_spans for s in scope.spans]
        for s in spans:
            assert len(s.trace_id) == 16 and len(s.span_id) == 8 and len(s.parent_span_id) in (0, 8), s
            assert 0 < s.start_time_unix_nano <= s.end_time_unix_nano, s
        told = [{"name": s.name, "kind": s.kind, "traceId": s.trace_id.hex(), "attributes": [a.key for a in s.attributes]} for s in spans]
    else:
        metrics = [m for r in again.resource_metrics for scope in r.scope_metrics for m in scope.metrics]
        for m in metrics:
            for p in m.histogram.data_points:
                assert len(p.bucket_counts) == len(p.explicit_bounds) + 1 and sum(p.bucket_counts) == p.count, m
        told = [{"name": m.name, "kind": m.WhichOneof("data"), "unit": m.unit} for m in metrics]
    print(json.dumps({"path": path, "told": told}))
