{{- define "triwire.name" -}}
{{- printf "%s" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "triwire.selector" -}}
app.kubernetes.io/name: triwire
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "triwire.labels" -}}
{{ include "triwire.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "triwire.check" -}}
{{- if and (gt (int .Values.replicas) 1) (eq .Values.store "") -}}
{{- fail "replicas: more than 1 needs a shared store: set store to postgres://user@host/database, or replicas to 1" -}}
{{- end -}}
{{- if and (ne .Values.store "") (empty .Values.secrets) -}}
{{- fail "secrets: a store in PostgreSQL needs TRIWIRE_SEAL_KEY, the same for all replicas: name a Secret that has it" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (eq .Values.ingress.host "") -}}
{{- fail "ingress.host: name the host under which clients reach the gateway" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor (eq .Values.metrics.tokenSecret "") -}}
{{- fail "metrics.tokenSecret: /metrics needs the metrics.token of the configuration: name the Secret that has it" -}}
{{- end -}}
{{- end -}}
